"""Records and time series as strict JSON: no NaN, no infinity, absent is null."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from loadgen.core.metrics.summary import Summary
from loadgen.core.record import RequestRecord
from loadgen.report.columns import Place


def series_json(summary: Summary) -> str:
    """The time series of a run, the server's under `server`, or null where it has none."""
    return json.dumps(_series(summary), allow_nan=False) + "\n"


def several_series_json(runs: Iterable[tuple[Place, Summary]]) -> str:
    """The time series of several runs: an array of objects with the place of each and its `series`."""
    several = [{**place, "series": _series(summary)} for place, summary in runs]
    return json.dumps(several, allow_nan=False) + "\n"


def _series(summary: Summary) -> dict[str, Any] | None:
    if summary.time_series is None:
        return None
    return asdict(summary.time_series) | {"server": _plain(summary.server_series)}


def records_json(records: Iterable[tuple[Place, RequestRecord]]) -> Iterator[str]:
    """One JSON array of records, in pieces, so that a long run is never whole in memory.

    What the place of a run holds stands in front of each of its records.
    """
    yield "["
    separator = "\n"
    for place, record in records:
        yield separator + json.dumps({**place, **record_object(record)}, allow_nan=False, ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n"


def record_object(record: RequestRecord) -> dict[str, Any]:
    """A record as JSON-ready values: one key a field, in the order of the type."""
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
