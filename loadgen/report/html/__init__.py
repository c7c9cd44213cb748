"""A run or a sweep as one HTML file: no network, no framework, tables beside every chart."""

from loadgen.report.html.run import run_html
from loadgen.report.html.sweep import sweep_html

__all__ = ["run_html", "sweep_html"]
