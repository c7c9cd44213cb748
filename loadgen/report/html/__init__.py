"""A run, a sweep or a search for a capacity as one HTML file: no network, no framework, tables beside every chart."""

from loadgen.report.html.capacity import capacity_html
from loadgen.report.html.run import run_html
from loadgen.report.html.sweep import sweep_html

__all__ = ["capacity_html", "run_html", "sweep_html"]
