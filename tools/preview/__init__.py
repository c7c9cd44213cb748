"""Pictures of the dashboards without a Grafana: the same JSON and the same queries, drawn by a page of our own."""
