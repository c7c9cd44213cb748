"""A ladder of runs as text."""

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from loadgen.core.metrics.summary import Sweep, SweepLevel
from loadgen.core.run import RunManifest
from loadgen.report import text_parts
from loadgen.report.ladder import server_levels, sweep_name
from loadgen.report.terminal.frame import ending, verdict_block
from loadgen.report.text_parts import INDENT, bar
from loadgen.report.verdict import has_doubts, sweep_doubts, sweep_headline
from loadgen.report.words import (
    asked,
    failed_share,
    knee_text,
    levels_text,
    milliseconds,
    number,
    percent,
    printable,
    variable_text,
)


def sweep_text(sweep: Sweep, manifest: RunManifest | None = None, *, width: int = 100, color: bool = False) -> str:
    """A ladder: doubts about any level first, then one row a level, the knee marked, then bars against the level.

    `manifest` is that of its first level, for what it says of the data.
    """
    title = printable(sweep_name(sweep))
    beneath = ""
    if sweep.levels:
        target = sweep.levels[0].summary.target
        title, beneath = f"{title}, {levels_text(sweep)}", f"{printable(target.model)} at {printable(target.url)}"
    parts: list[RenderableType] = [verdict_block(sweep_headline(sweep), title, sweep_doubts(sweep), beneath)]
    if sweep.levels:
        parts.append(
            text_parts.section(
                f"Levels of {variable_text(sweep.variable)}; latency in ms", _levels(sweep, width - INDENT)
            )
        )
        if (table := server_levels(sweep)) is not None:
            parts.append(text_parts.section("Drafts and server", text_parts.text_table(table, width - INDENT)))
        parts.append(text_parts.section("Against the load", _bars(sweep, width - INDENT)))
        parts.append(text_parts.section("Knee", Text(knee_text(sweep))))
    parts.extend(ending([level.summary for level in sweep.levels], manifest))
    return text_parts.rendered(parts, width, color)


def _levels(sweep: Sweep, room: int) -> RenderableType:
    titles = (
        ">level",
        ">req/s",
        ">out tok/s",
        ">TTFT p50",
        ">p95",
        ">TPOT p50",
        ">p95",
        ">E2EL p50",
        ">p95",
        ">failed",
    )
    rows = []
    for level in sweep.levels:
        summary, latency = level.summary, level.summary.latency
        cells = [
            asked(level.level),
            number(summary.throughput.requests_per_s),
            number(summary.throughput.output_tokens_per_s),
            milliseconds(latency.ttft_s.p50),
            milliseconds(latency.ttft_s.p95),
            milliseconds(latency.tpot_s.p50),
            milliseconds(latency.tpot_s.p95),
            milliseconds(latency.e2el_s.p50),
            milliseconds(latency.e2el_s.p95),
            percent(failed_share(summary)),
        ]
        rows.append([*map(Text, cells), _mark(sweep, level)])
    table, _ = text_parts.table((*titles, ""), rows, room, leave_out=(8, 6, 1, 4, 7))
    return table


def _mark(sweep: Sweep, level: SweepLevel) -> Text:
    mark = Text()
    if sweep.knee is not None and sweep.knee.level == level.level:
        mark.append("◀ knee", style="bold cyan")
    verdict = level.summary.verdict
    if not verdict.valid:
        mark.append(" ✗ invalid" if mark else "✗ invalid", style="bold red")
    elif has_doubts(verdict.findings):
        mark.append(" ! doubts" if mark else "! doubts", style="yellow")
    return mark


def _bars(sweep: Sweep, room: int) -> RenderableType:
    """Two bars a level, each scaled to its own largest value: output tokens/s and TTFT p50."""
    speeds = [level.summary.throughput.output_tokens_per_s for level in sweep.levels]
    waits = [level.summary.latency.ttft_s.p50 for level in sweep.levels]
    cells = max(6, min(36, (room - 30) // 2))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    for _ in range(2):
        grid.add_column(width=cells, no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row("", Text("output tokens/s", style="dim"), "", Text("TTFT p50, ms", style="dim"), "")
    for level, speed, wait in zip(sweep.levels, speeds, waits, strict=True):
        grid.add_row(
            asked(level.level),
            Text(bar(speed, speeds, cells), style="cyan"),
            number(speed),
            Text(bar(wait, waits, cells), style="magenta"),
            milliseconds(wait),
        )
    return grid
