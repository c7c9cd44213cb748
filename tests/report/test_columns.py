"""Columns of tables: each has values of the type that it says, whatever a run holds."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from loadgen.adapters.parquet import write_runs
from loadgen.core.metrics.summary import Analysis, Finding, Summary, Sweep
from loadgen.core.record import RequestRecord
from loadgen.report.columns import Column, Place, request_columns, run_columns, text_of

PLACES = {"arm": str, "repeat": int, "level": float}
PLACE = {"arm": "eagle3", "repeat": 2, "level": 4}


def rows_of(analysis: Analysis, hostile: Analysis, sweep: Sweep) -> list[tuple[Place, Summary]]:
    """A run with everything in it, one in which everything failed, and levels."""
    return [(PLACE, each) for each in (analysis.summary, hostile.summary, *(level.summary for level in sweep.levels))]


def fits(column: Column, row: Any) -> bool:
    """Whether the row's value is absent, or of the column's type; a whole number will do for a float."""
    value = column.pick(row)
    if value is None or column.kind is str:
        return value is None or isinstance(text_of(value), str)
    if column.kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is column.kind


def test_values_are_of_their_columns_type(
    analysis: Analysis, hostile: Analysis, sweep: Sweep, records: list[RequestRecord]
) -> None:
    """In tables of runs and of requests, the place in front included."""
    runs = rows_of(analysis, hostile, sweep)
    columns = run_columns(runs, PLACES)
    assert [column.name for column in columns][:4] == ["arm", "repeat", "level", "schema"]
    assert [(column.name, row) for column in columns for row in runs if not fits(column, row)] == []
    requests = [(PLACE, record) for record in records]
    assert [(each.name, row) for each in request_columns(PLACES) for row in requests if not fits(each, row)] == []
    kinds = {column.name: column.kind for column in columns}
    assert (kinds["requests.completed"], kinds["latency.ttft_s.p50"], kinds["verdict.valid"]) == (int, float, bool)
    assert kinds["verdict.findings"] is str


def test_a_place_without_a_value_is_absent(analysis: Analysis) -> None:
    """A run that lacks what others have is not shifted."""
    arm, repeat, level = run_columns([({}, analysis.summary)], PLACES)[:3]
    row: tuple[Place, Summary] = ({"repeat": 1}, analysis.summary)
    assert (arm.pick(row), repeat.pick(row), level.pick(row)) == (None, 1, None)


def test_text_of_what_is_no_number() -> None:
    """As a cell shows it."""
    finding = Finding(kind="failures", severity="warning", evidence="e", advice="a")
    assert text_of((finding, "x")) == "warning failures;x"
    assert text_of({"é": 1}) == '{"é": 1}'
    assert (text_of(True), text_of(0.5), text_of(3)) == ("true", "0.5", "3")


def test_runs_come_back_from_parquet(analysis: Analysis, hostile: Analysis, sweep: Sweep, tmp_path: Path) -> None:
    """Typed, a column a number, absent as null, in the columns of the CSV."""
    runs = rows_of(analysis, hostile, sweep)
    path = tmp_path / "runs.parquet"
    assert write_runs(path, runs, PLACES) == len(runs)
    table = pq.read_table(path)
    assert table.schema.names == [column.name for column in run_columns(runs, PLACES)]
    assert table.schema.metadata[b"schema"] == b"loadgen.summary/1"
    assert table["latency.ttft_s.p50"].to_pylist() == [summary.latency.ttft_s.p50 for _, summary in runs]
    assert table["requests.failed_by_kind.http_5xx"].to_pylist()[0] == 7
    assert table["latency.ttft_s.mean"].to_pylist()[1] is None
    assert table["level"].to_pylist() == [4.0] * len(runs)
