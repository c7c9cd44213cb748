"""CSV of a run, a sweep, their requests and their time series.

The columns follow the types: a column is the path of its number in `summary.json` (`latency.ttft_s.p50`, seconds) or in
a record (`failure.kind`), so a new field is a new column. Absent is an empty cell. Rows end with a newline; text is
quoted where it must be, and text that a spreadsheet would run as a formula gets a leading apostrophe.
"""

import csv
import io
import json
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from loadgen.core.metrics.per_request import REQUEST_METRICS
from loadgen.core.metrics.summary import Finding, Summary, Sweep, TimeSeries
from loadgen.core.record import FailureKind, RequestRecord
from loadgen.core.server.series import ServerSeries

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_LONG_LISTS = frozenset({"event_ns", "event_tokens", "speculation.per_step_accepted", "speculation.per_step_drafted"})

Pick = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    pick: Pick


def run_csv(summary: Summary) -> str:
    """A header and one row: the summary, without its time series and other tables."""
    columns = list(_summary_columns([summary]))
    return "".join(_lines(columns, [summary]))


def sweep_csv(sweep: Sweep) -> str:
    """A header and one row a level; `level` is the value of `variable` that was asked for."""
    own = [
        _Column("sweep_id", lambda level: sweep.sweep_id),
        _Column("variable", lambda level: sweep.variable),
        _Column("level", lambda level: level.level),
        _Column("knee", lambda level: sweep.knee is not None and sweep.knee.level == level.level),
    ]
    inner = [
        _Column(column.name, _then(lambda level: level.summary, column.pick))
        for column in _summary_columns([level.summary for level in sweep.levels])
    ]
    return "".join(_lines([*own, *inner], sweep.levels))


def requests_csv(records: Iterable[tuple[float | None, RequestRecord]], *, with_level: bool = False) -> Iterator[str]:
    """A header and one line a record, as they come: its fields, then its metrics in seconds.

    Lists with a value an event are left out; `events` counts them. `with_level` puts the level in front.
    """
    columns = [_Column("level", lambda pair: pair[0])] if with_level else []
    columns += [
        _Column(column.name, _then(_record, column.pick))
        for column in _columns(RequestRecord, (), "", lambda record: record)
        if column.name not in _LONG_LISTS
    ]
    columns.append(_Column("events", lambda pair: len(pair[1].event_ns)))
    columns += [_Column(name, _then(_record, metric)) for name, metric in REQUEST_METRICS.items()]
    return _lines(columns, records)


def series_csv(runs: Iterable[tuple[float | None, Summary]], *, with_level: bool = False) -> Iterator[str]:
    """A header and one line a bin: `start_s` is the bin's own start, `step_s` its length, counts are per bin.

    Columns that begin with `server.` are what the server told.
    """
    names = [field.name for field in fields(TimeSeries) if field.name not in ("start_s", "step_s")]
    told = [field.name for field in fields(ServerSeries) if field.name != "edges_s"]
    header = [*(["level"] if with_level else []), "start_s", "step_s", *names, *(f"server.{name}" for name in told)]
    yield _line(header)
    for level, summary in runs:
        one, server = summary.time_series, summary.server_series
        if one is None:
            continue
        for i in range(len(one.sent)):
            cells = [round(one.start_s + i * one.step_s, 9), one.step_s, *(getattr(one, name)[i] for name in names)]
            cells += [None if server is None else getattr(server, name)[i] for name in told]
            yield _line([_cell(cell) for cell in ([level, *cells] if with_level else cells)])


def _lines(columns: Sequence[_Column], rows: Iterable[Any]) -> Iterator[str]:
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
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            text = str(value)
            return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
        case Finding():
            return f"{value.severity} {value.kind}"
        case tuple():
            return ";".join(_cell(item) for item in value)
        case _:
            return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _summary_columns(rows: Sequence[Summary]) -> Iterator[_Column]:
    return _columns(Summary, rows, "", lambda summary: summary)


def _columns(of: Any, rows: Sequence[Any], prefix: str, pick: Pick) -> Iterator[_Column]:
    """The columns of a type. `rows` are looked at only for the keys of dictionaries, so that none is lost."""
    hints = get_type_hints(of)
    for field in fields(of):
        name, inner = f"{prefix}{field.name}", _without_none(hints[field.name])
        value = _part(pick, field.name)
        if inner in (TimeSeries, ServerSeries) or _is_table(inner):
            continue
        if is_dataclass(inner):
            yield from _columns(inner, rows, f"{name}.", value)
        elif name == "requests.failed_by_kind":
            for kind in FailureKind:
                yield _Column(f"{name}.{kind}", _entry(value, kind, 0))
        elif get_origin(inner) is dict and is_dataclass(get_args(inner)[1]):
            for key in sorted({key for row in rows for key in value(row) or ()}):
                yield from _columns(get_args(inner)[1], rows, f"{name}.{key}.", _entry(value, key, None))
        else:
            yield _Column(name, value)


def _is_table(hint: Any) -> bool:
    """Whether a field holds rows of its own, which make no cell. Findings do: each is a word or two."""
    return get_origin(hint) is tuple and is_dataclass(get_args(hint)[0]) and get_args(hint)[0] is not Finding


def _record(pair: tuple[float | None, RequestRecord]) -> RequestRecord:
    return pair[1]


def _then(first: Pick, second: Pick) -> Pick:
    return lambda row: second(first(row))


def _part(pick: Pick, name: str) -> Pick:
    def part(row: Any) -> Any:
        whole = pick(row)
        return None if whole is None else getattr(whole, name)

    return part


def _entry(pick: Pick, key: str, absent: Any) -> Pick:
    return lambda row: (pick(row) or {}).get(key, absent)


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return kinds[0] if len(kinds) == 1 else hint
    return hint
