"""What every report begins and ends with: the verdict and its doubts, the data, the gates that failed."""

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.core.analysis.gates import failed_gates
from loadgen.core.metrics.summary import Summary
from loadgen.core.run import RunManifest
from loadgen.report import text_parts
from loadgen.report.text_parts import INDENT
from loadgen.report.verdict import Doubt, Headline
from loadgen.report.words import data_facts, printable

_HEADLINES = {"valid": "bold green", "warning": "bold yellow", "unfinished": "bold red", "invalid": "bold red"}
_COLOURS = {"invalid": "bold red", "warning": "yellow", "info": "dim"}


def verdict_block(headline: Headline, title: str, doubts: Iterable[Doubt], beneath: str = "") -> RenderableType:
    """What every report begins with: the verdict, what it is a report of, and the doubts."""
    first = Text(headline.words, style=_HEADLINES[headline.kind]).append(f"  {title}", style="bold")
    lines = [Text(f"  {beneath}", style="dim")] if beneath else []
    return Group(first, *lines, *(_doubt(doubt) for doubt in doubts))


def _doubt(doubt: Doubt) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=7)
    grid.add_column(ratio=1, overflow="fold")
    text = Text()
    for where, evidence in doubt.seen:
        at = f" at {where}" if where else ""
        text.append(f"{printable(doubt.kind)}{at}: {printable(evidence)}\n")
    text.append(printable(doubt.advice), style="dim")
    text.rstrip()
    grid.add_row(Text(printable(doubt.severity), style=_COLOURS.get(doubt.severity, "")), text)
    return Padding(grid, (0, 0, 0, INDENT))


def ending(summaries: Sequence[Summary], manifest: RunManifest | None) -> Iterable[RenderableType]:
    """What stands at the end: the data that was used, and the gates that failed."""
    if manifest is None:
        return
    if rows := data_facts(manifest):
        yield text_parts.section("Data", text_parts.facts(rows))
    if failed := failed_gates(summaries, manifest.options):
        yield text_parts.section(
            "Gates", Group(*(Text(f"failed: {gate.evidence}", style="bold red") for gate in failed))
        )
