"""What dashboards are made of, as plain values: expressions, panels, places, and the dashboards themselves."""
