"""A prediction as terminal text. Whatever it shows is expected, and it says so."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadgen.core.simulation.prediction import Bounds, Point, Prediction
from loadgen.report import text_parts
from loadgen.report.prediction import (
    bound_cells,
    conclusion,
    level_cells,
    limit_facts,
    remark,
    setting_facts,
)
from loadgen.report.text_parts import INDENT, bar
from loadgen.report.words import first_upper, number, printable


def prediction_text(prediction: Prediction, *, width: int = 100, color: bool = False) -> str:
    """The answer first, then the ladder with a bar of the speedup, the limits, the bounds, and what it stands on."""
    room = width - INDENT
    parts: list[RenderableType] = [
        Text("EXPECTED, NOT MEASURED  ", style="bold cyan").append(first_upper(conclusion(prediction)), style="bold"),
        *(Text(f"  ! {printable(note)}", style="yellow") for note in prediction.notes),
        text_parts.section("By concurrency; steps and TPOT in ms", _ladder(prediction, room)),
        text_parts.section("Speedup of decoding", _bars(prediction.points, room)),
        text_parts.section("Limits", text_parts.facts(limit_facts(prediction))),
    ]
    if any(bounds.draft_free is not None for bounds in prediction.bounds):
        parts.append(text_parts.section("Bounds of the speedup", _bounds(prediction.bounds, room)))
    parts.append(text_parts.section("Stands on", text_parts.facts(setting_facts(prediction))))
    return text_parts.rendered(parts, width, color)


def _ladder(prediction: Prediction, room: int) -> RenderableType:
    titles = (
        ">concurrency",
        ">step",
        ">with",
        ">break-even",
        ">speedup",
        ">TPOT",
        ">with",
        ">tokens/s",
        ">with",
        "",
    )
    rows = [
        [Text(str(point.concurrency)), *map(Text, level_cells(point)), _remark(point)] for point in prediction.points
    ]
    table, _ = text_parts.table(titles, rows, room, leave_out=(1, 2, 7, 8))
    length = number(prediction.points[0].acceptance_length)
    note = (
        f"{length} tokens a step are expected; break-even is what a step has to emit for speculation to gain nothing."
    )
    return Group(table, Text(note, style="dim"))


def _remark(point: Point) -> Text:
    return Text(remark(point), style="yellow" if point.fits_memory is False else "red")


def _bars(points: Sequence[Point], room: int) -> RenderableType:
    """A bar a level, in one scale with a line at 1: what reaches beyond it is gained."""
    cells = max(6, room - 24)
    largest = max(1.0, *(point.speedup for point in points))
    one = round(cells / largest)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(width=cells, no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for point in points:
        drawn = bar(point.speedup, (largest,), cells)
        text = Text(drawn[:one], style="cyan" if point.speedup > 1 else "red")
        text.append(drawn[one:].replace("█", "▓"), style="green")
        if len(drawn) < one:
            text.append(" " * (one - len(drawn) - 1) + "│", style="dim")
        grid.add_row(str(point.concurrency), text, f"{number(point.speedup)} ×")
    return grid


def _bounds(bounds: Sequence[Bounds], room: int) -> RenderableType:
    titles = [">concurrency", ">free drafter", ">perfect lengths", ">perfect drafter"]
    combined = any(one.combined is not None for one in bounds)
    if combined:
        titles += [">combined: lookup cost", ">where used", ">every step"]
    rows = [[Text(str(one.concurrency)), *map(Text, bound_cells(one))][: len(titles)] for one in bounds]
    table, _ = text_parts.table(titles, rows, room, leave_out=(3, 1) if combined else ())
    return table
