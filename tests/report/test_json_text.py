"""Summaries, records and time series as JSON."""

import json
from dataclasses import fields, replace

import msgspec
import pytest

from loadgen.adapters.store.files import Scrubber, document
from loadgen.core.metrics.summary import Analysis, Sweep
from loadgen.core.record import RequestRecord
from loadgen.report.json import records_json, series_json, several_series_json


def test_a_summary_reads_as_agreed(analysis: Analysis, golden) -> None:
    """`summary.json` of a run, the contract for scripts."""
    golden.check("summary.json", document(analysis.summary, Scrubber()).decode())


def test_records_are_one_array(records: list[RequestRecord]) -> None:
    """Every record with every field; levels in front where asked for; no record at all is an empty array."""
    text = "".join(records_json(({}, record) for record in records))
    objects = json.loads(text)
    assert [one["request_id"] for one in objects] == [record.request_id for record in records]
    assert list(objects[0]) == [field.name for field in fields(RequestRecord)]
    assert msgspec.json.decode(text, type=list[RequestRecord]) == records
    (levelled,) = json.loads("".join(records_json([({"level": 2.0}, records[0])])))
    assert levelled["level"] == 2.0
    assert json.loads("".join(records_json([]))) == []


def test_series_are_json(analysis: Analysis, hostile: Analysis, sweep: Sweep) -> None:
    """A run's series is an object or null; a sweep's is an array with the levels."""
    assert json.loads(series_json(analysis.summary))["step_s"] == 1.0
    assert json.loads(series_json(analysis.summary))["server"]["running_requests"][30] is None
    assert json.loads(series_json(replace(analysis.summary, server_series=None)))["server"] is None
    assert json.loads(series_json(hostile.summary)) is None
    levels = [({"level": level.level}, level.summary) for level in sweep.levels]
    assert [one["level"] for one in json.loads(several_series_json(levels))] == [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_no_number_that_json_does_not_have(analysis: Analysis, sweep: Sweep, odd: float) -> None:
    """A NaN or an infinity is refused loudly in a series and is null in a summary; none is ever written."""
    series = replace(analysis.summary.time_series, output_tokens=(odd,))
    summary = replace(analysis.summary, time_series=series)
    with pytest.raises(ValueError, match="JSON compliant"):
        series_json(summary)
    with pytest.raises(ValueError, match="JSON compliant"):
        several_series_json([({"level": 1}, summary)])
    text = document(summary, Scrubber()).decode()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["time_series"]["output_tokens"] == [None]
