"""A comparison of arms as text for a terminal and as a page."""

from loadgen.report.comparison.html import comparison_html
from loadgen.report.comparison.text import comparison_text

__all__ = ["comparison_html", "comparison_text"]
