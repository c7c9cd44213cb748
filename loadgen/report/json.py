"""Records and time series as strict JSON: no NaN, no infinity, absent is null."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from loadgen.core.metrics.summary import Summary, Sweep
from loadgen.core.record import RequestRecord


def series_json(summary: Summary) -> str:
    """The time series of a run, the server's under `server`, or null where it has none."""
    return json.dumps(_series(summary), allow_nan=False) + "\n"


def sweep_series_json(sweep: Sweep) -> str:
    """The time series of every level: an array of `{level, series}`."""
    levels = [{"level": level.level, "series": _series(level.summary)} for level in sweep.levels]
    return json.dumps(levels, allow_nan=False) + "\n"


def _series(summary: Summary) -> dict[str, Any] | None:
    if summary.time_series is None:
        return None
    return asdict(summary.time_series) | {"server": _plain(summary.server_series)}


def records_json(records: Iterable[tuple[float | None, RequestRecord]], *, with_level: bool = False) -> Iterator[str]:
    """One JSON array of records, in pieces, so that a long run is never whole in memory.

    `with_level` puts the key `level` in front of each.
    """
    yield "["
    separator = "\n"
    for level, record in records:
        whole = {"level": level, **record_object(record)} if with_level else record_object(record)
        yield separator + json.dumps(whole, allow_nan=False, ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n"


def record_object(record: RequestRecord) -> dict[str, Any]:
    """A record as JSON-ready values: one key a field, in the order of the type."""
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
