"""Summaries, sweeps and records as strict JSON: no NaN, no infinity, absent is null."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from loadgen.core.metrics.summary import Summary, Sweep
from loadgen.core.record import RequestRecord


def summary_json(summary: Summary) -> str:
    """`summary.json`, indented, with a newline at its end."""
    return json.dumps(asdict(summary), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def sweep_json(sweep: Sweep) -> str:
    """`sweep.json`: the levels with their summaries, and the knee."""
    return json.dumps(asdict(sweep), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def series_json(summary: Summary) -> str:
    """The time series of a run, or null where it has none."""
    series = summary.time_series
    return json.dumps(None if series is None else asdict(series), allow_nan=False) + "\n"


def records_json(records: Iterable[RequestRecord]) -> Iterator[str]:
    """One JSON array of records, in pieces, so that a long run is never whole in memory."""
    yield "["
    separator = "\n"
    for record in records:
        yield separator + json.dumps(record_object(record), allow_nan=False, ensure_ascii=False)
        separator = ",\n"
    yield "\n]\n"


def record_object(record: RequestRecord) -> dict[str, Any]:
    """A record as JSON-ready values: one key a field, in the order of the type."""
    return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
