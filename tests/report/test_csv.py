"""CSV of summaries, ladders, requests and series."""

import csv
import io
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.metrics.per_request import REQUEST_METRICS
from loadgen.core.metrics.summary import Analysis, Latency, Summary, Sweep, TimeSeries
from loadgen.core.record import FailureKind, Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.server.series import ServerSeries
from loadgen.report.csv import SWEEP_PLACES, requests_csv, runs_csv, series_csv, sweep_rows

LEVEL = {"level": float}


def read(text: str) -> list[dict[str, str]]:
    """The rows by column; every row is as wide as the header."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert len(set(rows[0])) == len(rows[0])
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def run_csv(summary: Summary) -> str:
    """A single run."""
    return runs_csv([({}, summary)])


def sweep_csv(sweep: Sweep) -> str:
    """The levels of a sweep."""
    return runs_csv(sweep_rows(sweep), SWEEP_PLACES)


def requests(records: list[RequestRecord]) -> list[dict[str, str]]:
    """Records of a single run, as CSV and back."""
    return read("".join(requests_csv(({}, record) for record in records)))


def test_a_run_reads_as_agreed(analysis: Analysis, golden) -> None:
    """Header and row of a run."""
    golden.check("run.csv", run_csv(analysis.summary))


def test_a_sweep_reads_as_agreed(sweep: Sweep, golden) -> None:
    """Header and a row a level."""
    golden.check("sweep.csv", sweep_csv(sweep))


def test_requests_and_series_read_as_agreed(records: list[RequestRecord], analysis: Analysis, golden) -> None:
    """Header and lines of records and bins."""
    golden.check("requests.csv", "".join(requests_csv(({}, record) for record in records)))
    series = replace(
        analysis.summary.time_series,
        **{field.name: getattr(analysis.summary.time_series, field.name)[:4] for field in fields(TimeSeries)[2:]},
    )
    golden.check("series.csv", "".join(series_csv([({}, replace(analysis.summary, time_series=series))])))


def test_a_column_is_the_path_of_its_number(analysis: Analysis) -> None:
    """`latency.ttft_s.p50` is that number of `summary.json`, in full precision."""
    summary = analysis.summary
    (row,) = read(run_csv(summary))
    for metric in fields(Latency):
        for name in ("n", "p50", "p99", "p99_9"):
            value = getattr(getattr(summary.latency, metric.name), name)
            assert row[f"latency.{metric.name}.{name}"] == ("" if value is None else repr(value))
    assert float(row["throughput.output_tokens_per_s"]) == summary.throughput.output_tokens_per_s
    assert row["verdict.valid"] == "true"
    assert row["verdict.findings"] == "warning failures;info too_few_samples"
    assert json.loads(row["labels"]) == summary.labels
    assert row["speculation.acceptance_by_position"] == "0.71;0.46;0.27"


def test_every_field_of_the_summary_has_a_column(analysis: Analysis) -> None:
    """Nothing is listed twice by hand, so nothing is forgotten but the series, which have files of their own."""
    (row,) = read(run_csv(analysis.summary))
    for field in fields(analysis.summary):
        there = any(column == field.name or column.startswith(f"{field.name}.") for column in row)
        assert there == (not field.name.endswith("_series")), field.name
    assert {f"requests.failed_by_kind.{kind}" for kind in FailureKind} <= set(row)
    assert row["requests.failed_by_kind.http_5xx"] == "7"
    assert row["requests.failed_by_kind.tls"] == "0"


def test_the_header_covers_every_level(sweep: Sweep, analysis: Analysis) -> None:
    """A later level with more in it widens the header; the levels without it have empty cells, not shifted ones."""
    plain, rich = sweep.levels[0], replace(sweep.levels[1], summary=analysis.summary)
    first, second = read(sweep_csv(replace(sweep, levels=(plain, rich))))
    assert first["latency_error_adjusted.ttft_s.p50"] == ""
    assert second["latency_error_adjusted.ttft_s.p50"] == "0.0514"
    assert first["speculation.acceptance_length"] == ""
    assert second["speculation.acceptance_length"] == "2.44"
    assert (first["level"], second["level"]) == ("1.0", "2.0")
    assert read(run_csv(plain.summary))[0].keys() == {k for k in first if "error_adjusted" not in k} - {
        "sweep_id",
        "variable",
        "level",
        "knee",
    }


def test_absent_is_empty_and_never_zero(hostile: Analysis) -> None:
    """An all-failed run has empty cells for latencies and rates."""
    (row,) = read(run_csv(hostile.summary))
    for column in ("latency.ttft_s.mean", "throughput.requests_per_s", "tokens.output", "slo.good", "window.kind"):
        assert row[column] == ""
    assert row["requests.failed"] == "3"


def test_commas_quotes_and_line_breaks_survive(records: list[RequestRecord]) -> None:
    """An error message of two lines with a comma stays one cell of one row."""
    rows = requests(records)
    assert len(rows) == len(records)
    assert rows[3]["failure.message"] == 'a "quoted", message\r\non two lines'
    assert rows[3]["failure.kind"] == "http_5xx"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＠"])
def test_no_cell_is_a_formula(records: list[RequestRecord], start: str) -> None:
    """Text that a spreadsheet would run is led by an apostrophe; a number below zero is left alone."""
    bad = replace(records[1], category=f"{start}cmd|' /C calc'!A0", due_ns=-5)
    (row,) = requests([bad])
    assert row["category"] == "'" + (bad.category or "")
    assert row["due_ns"] == "-5"


def test_a_record_has_its_fields_and_its_metrics(records: list[RequestRecord]) -> None:
    """Fields in the order of the type, nested ones with a dot, metrics in seconds; lists of events are left out."""
    row = requests(records)[1]
    assert row["request_id"] == "r-1"
    assert row["phase"] == "measure"
    assert float(row["ttft_s"]) == pytest.approx(0.050)
    assert float(row["ttft_from_due_s"]) == pytest.approx(0.052)
    assert float(row["tpot_s"]) == pytest.approx(0.010)
    assert row["speculation.histogram"] == "0;0;0;2"
    assert row["events"] == "3"
    assert set(REQUEST_METRICS) <= set(row)
    assert not {"event_ns", "event_tokens", "speculation.per_step_accepted"} & set(row)
    nested = {"failure", "speculation"}
    left = {"event_ns", "event_tokens"}
    assert {field.name for field in fields(RequestRecord)} - nested - left <= set(row)


def test_a_request_that_was_never_sent_has_no_latency(records: list[RequestRecord]) -> None:
    """Dropped and failed requests have a row with empty metrics, not a row of zeros, not no row."""
    rows = requests(records)
    for row in (rows[3], rows[5]):
        assert row["ttft_s"] == row["e2el_s"] == row["tpot_s"] == ""
    assert rows[5]["sent_ns"] == ""
    assert rows[5]["outcome"] == "dropped"


@given(st.text(), st.text())
def test_any_text_keeps_its_row(category: str, text: str) -> None:
    """Whatever a data set or a server says, a row stays a row and the text can be had back."""
    record = RequestRecord(
        seq=0, request_id="r", phase=Phase.MEASURE, category=category, outcome=Outcome.COMPLETED, text=text
    )
    (row,) = requests([record])
    assert row["category"].removeprefix("'") == category.removeprefix("'")
    assert row["text"].removeprefix("'") == text.removeprefix("'")
    assert row["outcome"] == "completed"


def test_a_ladder_names_the_level_of_a_row(records: list[RequestRecord], analysis: Analysis) -> None:
    """Requests and bins of several levels in one file can be told apart."""
    rows = read("".join(requests_csv([({"level": 4.0}, records[1]), ({"level": 8.0}, records[2])], LEVEL)))
    assert [row["level"] for row in rows] == ["4.0", "8.0"]
    without = replace(analysis.summary, time_series=None)
    bins = read("".join(series_csv([({"level": 4.0}, analysis.summary), ({"level": 8.0}, without)], LEVEL)))
    assert {row["level"] for row in bins} == {"4.0"}
    assert len(bins) == len(analysis.summary.time_series.sent)


def test_a_bin_has_its_own_start(analysis: Analysis) -> None:
    """Starts do not add up rounding; absent medians are empty."""
    series = replace(analysis.summary.time_series, start_s=0.5, step_s=0.1)
    rows = read("".join(series_csv([({}, replace(analysis.summary, time_series=series))])))
    assert [row["start_s"] for row in rows[:4]] == ["0.5", "0.6", "0.7", "0.8"]
    assert rows[0]["ttft_p50_s"] == ""


def test_the_server_s_bins_stand_beside_the_client_s(analysis: Analysis) -> None:
    """Every value of the server's series has a column; a bin that no page covers, or a run without pages, is empty."""
    rows = read("".join(series_csv([({}, analysis.summary)])))
    assert {f"server.{field.name}" for field in fields(ServerSeries)} - set(rows[0]) == {"server.edges_s"}
    assert (float(rows[29]["server.running_requests"]), rows[30]["server.running_requests"]) == (7.6, "")
    (bare, *_) = read("".join(series_csv([({}, replace(analysis.summary, server_series=None))])))
    assert bare.keys() == rows[0].keys()
    assert bare["server.gpu_power_w"] == ""
