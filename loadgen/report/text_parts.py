"""What terminal reports are made of: sections, facts, tables that never cut a number, bars."""

import io
from collections.abc import Iterable, Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from loadgen.report.tables import TextTable

_RULED = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_GAP = 2
_EIGHTHS = " ▏▎▍▌▋▊▉█"

INDENT = 2
"""Cells that the body of a section stands in from the left."""


def rendered(parts: Iterable[RenderableType], width: int, color: bool) -> str:
    """Everything in turn as text of a given width, without trailing blanks."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        soft_wrap=False,
    )
    console.print(Group(*parts))
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def section(title: str, body: RenderableType) -> RenderableType:
    """A heading and what stands under it, indented."""
    return Group(Text(""), Text(title, style="bold"), Padding(body, (0, 0, 0, INDENT)))


def facts(rows: Iterable[tuple[str, str]]) -> RenderableType:
    """Labels and values in two columns."""
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(Text(label), Text(value))
    return grid


def table(
    titles: Sequence[str],
    rows: Sequence[Sequence[Text]],
    room: int,
    *,
    leave_out: Sequence[int] = (),
    stretch: int | None = None,
    styles: Sequence[str] = (),
) -> tuple[Table, list[str]]:
    """A table that fits, and the titles of the columns that had to go.

    A title that begins with `>` aligns right. Columns of `leave_out` go in that order until the rest fits, because a
    number cut short is a wrong number; only the `stretch` column, which holds prose, is ever shortened.
    """
    widths = [max([cell_len(title.lstrip(">")), *(row[i].cell_len for row in rows)]) for i, title in enumerate(titles)]
    if stretch is not None:
        widths[stretch] = min(widths[stretch], 12)
    kept = list(range(len(titles)))
    going = list(leave_out)
    while going and sum(widths[i] + _GAP for i in kept) - _GAP > room:
        kept.remove(going.pop(0))
    if stretch is not None:
        widths[stretch] = max(1, room - sum(widths[i] + _GAP for i in kept if i != stretch))
    table = Table(box=_RULED, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0), header_style="dim")
    for i in kept:
        table.add_column(
            titles[i].lstrip(">"),
            justify="right" if titles[i].startswith(">") else "left",
            no_wrap=True,
            overflow="ellipsis",
            min_width=None if i == stretch else widths[i],
            max_width=widths[i],
        )
    for number_of_row, row in enumerate(rows):
        style = styles[number_of_row] if number_of_row < len(styles) else ""
        table.add_row(*(row[i] for i in kept), style=style)
    return table, [titles[i].lstrip(">") for i in range(len(titles)) if i not in kept and titles[i]]


def bar(value: float | None, among: Iterable[float | None], cells: int) -> str:
    """A bar of at most that many character cells, in eighths, relative to the largest of `among`; empty for None."""
    largest = max((other for other in among if other is not None), default=0.0)
    if value is None or value <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(value / largest * cells * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def text_table(told: TextTable, room: int) -> RenderableType:
    """A table that a page shows too, its caption beneath; where no spare column is left, others go from the right."""
    titles = [told.titles[0], *(title[1:] if title.startswith("<") else f">{title}" for title in told.titles[1:])]
    styles = ["bold" if place in told.marked else "" for place in range(len(told.rows))]
    rows = [[Text(cell) for cell in row] for row in told.rows]
    others = [place for place in range(len(titles) - 1, 1, -1) if place not in told.spare]
    drawn, left_out = table(titles, rows, room, leave_out=(*told.spare, *others), styles=styles)
    under = [told.caption] if told.caption else []
    under += [f"{title}: {about}." for title, about in told.told(left_out)]
    if left_out:
        under.append(left_out_text(left_out))
    return Group(drawn, *(Text(line, style="dim") for line in under))


def left_out_text(titles: Sequence[str]) -> str:
    """Which columns are missing from a table, and why."""
    columns = "Column" if len(titles) == 1 else "Columns"
    named = " · ".join(titles)
    return f"{columns} that this width has no room for: {named}."
