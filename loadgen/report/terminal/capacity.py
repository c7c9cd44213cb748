"""A search for a capacity as text."""

from rich.console import RenderableType
from rich.text import Text

from loadgen.core.capacity.result import CapacityResult
from loadgen.core.capacity.search import Search
from loadgen.core.run import RunManifest
from loadgen.report import text_parts
from loadgen.report.capacity import capacity_doubts, capacity_facts, capacity_headline, failure_lines, probe_table
from loadgen.report.terminal.frame import verdict_block
from loadgen.report.text_parts import INDENT
from loadgen.report.words import data_facts, printable


def capacity_text(
    search: Search, result: CapacityResult, manifest: RunManifest, *, width: int = 100, color: bool = False
) -> str:
    """What was found, why the next level fails, and a row a probe; `manifest` is that of the first probe."""
    title = printable(manifest.name or f"capacity of {manifest.target.model}")
    beneath = f"{printable(manifest.target.model)} at {printable(manifest.target.url)}"
    parts: list[RenderableType] = [
        verdict_block(capacity_headline(search, result), title, capacity_doubts(result), beneath),
        text_parts.section("Capacity", text_parts.facts(capacity_facts(search, result))),
    ]
    if lines := failure_lines(result):
        parts.append(text_parts.section("Why not more", Text("\n".join(lines))))
    if result.probes:
        parts.append(text_parts.section("Probes", text_parts.text_table(probe_table(result), width - INDENT)))
    if rows := data_facts(manifest):
        parts.append(text_parts.section("Data", text_parts.facts(rows)))
    return text_parts.rendered(parts, width, color)
