"""What the server and its drafts did, level by level of a ladder, alike on a terminal and on a page."""

from loadgen.core.metrics.summary import Gauge, Summary, Sweep
from loadgen.report.server import most_text
from loadgen.report.tables import TextTable
from loadgen.report.words import DASH, asked, number, percent, variable_text


def sweep_name(sweep: Sweep) -> str:
    """What a ladder is called: as somebody named it, else the model and what was varied, else its id."""
    if sweep.name:
        return sweep.name
    if not sweep.levels:
        return f"sweep {sweep.sweep_id}"
    return f"{sweep.levels[0].summary.target.model} by {variable_text(sweep.variable)}"


def server_levels(sweep: Sweep) -> TextTable | None:
    """A row a level, with the columns that any level has a value for; None when there are none."""
    titles = ("accept. length", "tok/step", "running", "waiting", "KV cache", "preempted", "prefix hits")
    rows = [_cells(level.summary) for level in sweep.levels]
    kept = [place for place in range(len(titles)) if any(row[place] != DASH for row in rows)]
    if not kept:
        return None
    return TextTable(
        caption="Running, waiting and KV cache: the largest of each level. A dash is what was not told.",
        titles=("level", *(titles[place] for place in kept)),
        rows=tuple(
            (asked(level.level), *(row[place] for place in kept)) for level, row in zip(sweep.levels, rows, strict=True)
        ),
        spare=tuple(range(len(kept), 1, -1)),
    )


def _cells(summary: Summary) -> tuple[str, ...]:
    found, server = summary.speculation, summary.server
    preempted = server.preemptions
    return (
        number(None if found is None else found.acceptance_length),
        number(None if found is None else found.tokens_per_step),
        _requests(server.running_requests),
        _requests(server.waiting_requests),
        percent(server.kv_used_ratio.peak),
        number(None if preempted is None else round(preempted)),
        percent(server.prefix_hit_ratio),
    )


def _requests(gauge: Gauge) -> str:
    return DASH if gauge.peak is None else most_text(gauge.peak)
