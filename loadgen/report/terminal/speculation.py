"""The speculation section as text."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.console import Group, RenderableType
from rich.text import Text

from loadgen.core.metrics.summary import Speculation, Summary
from loadgen.report import text_parts
from loadgen.report.speculation import (
    agreements,
    by_request,
    categories,
    no_speculation_text,
    origins,
    output_positions,
    positions,
    slope_text,
    speculation_facts,
    view_with_positions,
)
from loadgen.report.tables import TextTable
from loadgen.report.text_parts import bar

_MARKS = {True: "✓", False: "✗", None: "?"}
_BAR_CELLS = 24


def speculation(summary: Summary, room: int) -> RenderableType:
    """The section: one line for a baseline."""
    found = summary.speculation
    if found is None:
        return Text(no_speculation_text(summary))
    parts: list[RenderableType] = [text_parts.facts(speculation_facts(found, summary.server.speculation))]
    for part in _parts(found, room):
        parts.extend((Text(""), part))
    return Group(*parts)


def _parts(found: Speculation, room: int) -> Iterable[RenderableType]:
    """What there is of tables and sentences, an empty line apart."""
    if len(found.views) > 1:
        yield text_parts.text_table(origins(found), room)
    if found.agreement:
        yield _agreement(found)
    view = view_with_positions(found)
    if view is not None and view.by_position is not None and (told := positions(view)).rows:
        yield text_parts.text_table(_with_bars(told, view.by_position), room)
    for table in (output_positions(found), categories(found), by_request(found)):
        if table is not None and table.rows:
            yield text_parts.text_table(table, room)
    if found.tpot_by_acceptance is not None:
        yield Text(slope_text(found.tpot_by_acceptance))


def _agreement(found: Speculation) -> RenderableType:
    """A line a pair of origins, and the reason where two differ."""
    rows = []
    for one in agreements(found):
        said = ("; ".join(one.said) + ".", *one.reasons)
        rows.append((f"{_MARKS[one.agrees]} {one.pair}", " ".join(said)))
    return text_parts.facts(rows)


def _with_bars(told: TextTable, shares: Sequence[float]) -> TextTable:
    """The table with a bar for each share, the whole width being 100%."""
    drawn = tuple(
        (*row, bar(share, (1.0,), _BAR_CELLS)) for row, share in zip(told.rows, shares[: len(told.rows)], strict=True)
    )
    return replace(told, titles=(*told.titles, "<"), rows=drawn, spare=(3, 2))
