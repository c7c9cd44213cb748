"""Grafana's dashboards of load tests, as code: `python -m dashboards.generate` writes the JSON beside this file."""
