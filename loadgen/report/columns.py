"""Columns of tables of runs and of requests. They follow the types, so that a new field is a new column.

A column is the path of its value in `summary.json` (`latency.ttft_s.p50`, seconds) or in a record (`failure.kind`).
"""

import json
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from loadgen.core.metrics.per_request import REQUEST_METRICS
from loadgen.core.metrics.summary import Finding, Summary, TimeSeries
from loadgen.core.record import FailureKind, RequestRecord
from loadgen.core.server.series import ServerSeries

Pick = Callable[[Any], Any]
Place = Mapping[str, Any]
"""What tells a run from the others that it is stored with, such as its level."""
Places = Mapping[str, type]
"""The names of a place's values with their types (str, int, float or bool), in the order of their columns."""

NO_PLACES: Places = types.MappingProxyType({})

_LONG_LISTS = frozenset({"event_ns", "event_tokens", "speculation.per_step_accepted", "speculation.per_step_drafted"})
_PLAIN = (bool, int, float)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, the type of its values (bool, int, float, or str for all else), and a row's value."""

    name: str
    kind: type
    pick: Pick


def run_columns(rows: Sequence[tuple[Place, Summary]], places: Places = NO_PLACES) -> list[Column]:
    """The columns of a row a run: its place, then its summary without time series and other tables.

    They cover all of `rows`, also what only one of them has.
    """
    summaries = [summary for _, summary in rows]
    return [*_place_columns(places), *_of_second(_columns(Summary, summaries, "", lambda summary: summary))]


def request_columns(places: Places = NO_PLACES) -> list[Column]:
    """The columns of a row a request: the place of its run, its fields, then its metrics in seconds.

    Lists with a value an event are left out; `events` counts them.
    """
    told = [
        column for column in _columns(RequestRecord, (), "", lambda record: record) if column.name not in _LONG_LISTS
    ]
    told.append(Column("events", int, lambda record: len(record.event_ns)))
    told += [Column(name, float, metric) for name, metric in REQUEST_METRICS.items()]
    return [*_place_columns(places), *_of_second(told)]


def text_of(value: object) -> str:
    """A value that is no number as text: a finding in two words, a list joined by `;`, all else as JSON."""
    match value:
        case str():
            return str(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Finding():
            return f"{value.severity} {value.kind}"
        case tuple():
            return ";".join(map(text_of, value))
        case _:
            return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _place_columns(places: Places) -> Iterator[Column]:
    for name, kind in places.items():
        yield Column(name, kind, _entry(lambda pair: pair[0], name, None))


def _of_second(columns: Sequence[Column] | Iterator[Column]) -> Iterator[Column]:
    """The columns of what stands behind its place."""
    for column in columns:
        yield Column(column.name, column.kind, _then(lambda pair: pair[1], column.pick))


def _columns(of: Any, rows: Sequence[Any], prefix: str, pick: Pick) -> Iterator[Column]:
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
                yield Column(f"{name}.{kind}", int, _entry(value, kind, 0))
        elif get_origin(inner) is dict and is_dataclass(get_args(inner)[1]):
            for key in sorted({key for row in rows for key in value(row) or ()}):
                yield from _columns(get_args(inner)[1], rows, f"{name}.{key}.", _entry(value, key, None))
        else:
            yield Column(name, inner if inner in _PLAIN else str, value)


def _is_table(hint: Any) -> bool:
    """Whether a field holds rows of its own, which make no cell. Findings do: each is a word or two."""
    return get_origin(hint) is tuple and is_dataclass(get_args(hint)[0]) and get_args(hint)[0] is not Finding


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
