"""CSV of runs, their requests and their time series.

Columns are those of `columns`. Absent is an empty cell. Rows end with a newline; text is quoted where it must be, and
text that a spreadsheet would run as a formula gets a leading apostrophe.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import Any

from loadgen.core.metrics.summary import Summary, Sweep, TimeSeries
from loadgen.core.record import RequestRecord
from loadgen.core.server.series import ServerSeries
from loadgen.report.columns import NO_PLACES, Column, Place, Places, request_columns, run_columns, text_of

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

SWEEP_PLACES: Places = {"sweep_id": str, "variable": str, "level": float, "knee": bool}


def runs_csv(rows: Sequence[tuple[Place, Summary]], places: Places = NO_PLACES) -> str:
    """A header and one row a run: its place, then its summary without its time series and other tables."""
    return "".join(_lines(run_columns(rows, places), rows))


def sweep_rows(sweep: Sweep) -> list[tuple[Place, Summary]]:
    """The levels with their places, those of SWEEP_PLACES; `level` is the value of `variable` that was asked for."""
    knee = None if sweep.knee is None else sweep.knee.level
    return [
        (
            {
                "sweep_id": sweep.sweep_id,
                "variable": sweep.variable,
                "level": level.level,
                "knee": level.level == knee,
            },
            level.summary,
        )
        for level in sweep.levels
    ]


def requests_csv(records: Iterable[tuple[Place, RequestRecord]], places: Places = NO_PLACES) -> Iterator[str]:
    """A header and one line a record, as they come: the place of its run, its fields, then its metrics in seconds."""
    return _lines(request_columns(places), records)


def series_csv(runs: Iterable[tuple[Place, Summary]], places: Places = NO_PLACES) -> Iterator[str]:
    """A header and one line a bin: `start_s` is the bin's own start, `step_s` its length, counts are per bin.

    Columns that begin with `server.` are what the server told.
    """
    names = [field.name for field in fields(TimeSeries) if field.name not in ("start_s", "step_s")]
    told = [field.name for field in fields(ServerSeries) if field.name != "edges_s"]
    yield _line([*places, "start_s", "step_s", *names, *(f"server.{name}" for name in told)])
    for place, summary in runs:
        one, server = summary.time_series, summary.server_series
        if one is None:
            continue
        of_run = [place.get(name) for name in places]
        for i in range(len(one.sent)):
            cells = [round(one.start_s + i * one.step_s, 9), one.step_s, *(getattr(one, name)[i] for name in names)]
            cells += [None if server is None else getattr(server, name)[i] for name in told]
            yield _line([_cell(cell) for cell in (*of_run, *cells)])


def _lines(columns: Sequence[Column], rows: Iterable[Any]) -> Iterator[str]:
    yield _line([column.name for column in columns])
    for row in rows:
        yield _line([_cell(column.pick(row)) for column in columns])


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)  # so that a lone CR or LF in a cell is quoted
    return out.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return f"'{value}" if value.startswith(_FORMULA_STARTS) else str(value)
        case tuple():
            return ";".join(map(_cell, value))
        case _:
            return text_of(value)
