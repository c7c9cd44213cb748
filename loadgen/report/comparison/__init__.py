"""A comparison of arms as text for a terminal, as a page and as charts for documents."""

from loadgen.report.comparison.charts import document_charts
from loadgen.report.comparison.html import comparison_html
from loadgen.report.comparison.text import comparison_text

__all__ = ["comparison_html", "comparison_text", "document_charts"]
