"""Runs and sweeps as terminal text."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from loadgen.core.metrics.summary import Analysis, Distribution, FailureSample, Sweep, SweepLevel
from loadgen.core.run import RunManifest
from loadgen.report.terminal import run_text, sweep_text
from loadgen.report.text_parts import bar

WIDTHS = (40, 60, 72, 80, 88, 100, 120, 200)


def row(text: str, label: str) -> list[str]:
    """The cells of the table row that begins with a label."""
    line = next(line for line in text.splitlines() if line.strip().startswith(label + "  "))
    return re.split(r"\s{2,}", line.strip())


def test_a_run_reads_as_agreed(analysis: Analysis, golden) -> None:
    """The whole text of a run with everything in it, at 100 columns."""
    golden.check("run.txt", run_text(analysis, width=100))


def test_a_run_in_colour_reads_as_agreed(analysis: Analysis, golden) -> None:
    """The same with colours."""
    golden.check("run-color.txt", run_text(analysis, width=100, color=True))


def test_an_invalid_run_reads_as_agreed(hostile: Analysis, golden) -> None:
    """A run of which nothing completed and whose strings are hostile, at 80 columns."""
    golden.check("run-invalid.txt", run_text(hostile, width=80))


def test_a_sweep_reads_as_agreed(sweep: Sweep, golden) -> None:
    """A ladder with a knee and an invalid level, at 100 columns."""
    golden.check("sweep.txt", sweep_text(sweep, width=100))


def test_the_verdict_comes_first(analysis: Analysis, hostile: Analysis) -> None:
    """Nobody reads a number before knowing whether it may be believed."""
    assert run_text(analysis).startswith("✓ Valid, with doubts  ")
    text = run_text(hostile)
    assert text.startswith("✗ Invalid")
    assert text.index("do not use these numbers") < text.index("Latency")


def test_evidence_and_advice_are_shown(analysis: Analysis) -> None:
    """A doubt says what was seen and what to do."""
    text = " ".join(run_text(analysis).split())
    for finding in analysis.summary.verdict.findings:
        assert finding.evidence in text
        assert finding.advice in text


@pytest.mark.parametrize("width", WIDTHS)
def test_no_number_is_cut_short(analysis: Analysis, sweep: Sweep, width: int) -> None:
    """At any width a column is whole or absent, and no line is wider than the terminal."""
    wide = row(run_text(analysis, width=200), "E2EL")
    narrow = row(run_text(analysis, width=width), "E2EL")
    assert set(narrow) <= set(wide)
    assert "1018" in narrow
    for text in (run_text(analysis, width=width), sweep_text(sweep, width=width)):
        tables = text.replace('{"error": "engine overload…', "")
        assert all(cell_len(line) <= width for line in text.splitlines())
        assert not re.search(r"\d…", tables)


def test_columns_left_out_are_named(analysis: Analysis) -> None:
    """A narrow terminal says which percentiles it does not show."""
    text = " ".join(run_text(analysis, width=60).split())
    assert "Columns that this width has no room for: missing · p75 · p90 · p99.9." in text


def test_absent_is_a_dash_and_never_zero(hostile: Analysis) -> None:
    """Without a sample every latency is a dash; only counts may be 0."""
    assert row(run_text(hostile), "TTFT") == ["TTFT", "0", "3", *["—"] * 7]


def test_failures_stand_beside_the_percentiles(analysis: Analysis) -> None:
    """Percentiles of survivors name how many did not survive, and failed-as-infinity stands below."""
    text = run_text(analysis)
    assert "988 completed of 1000 planned; not in the percentiles: 10 failed, 2 cancelled" in text
    assert row(text, "TTFT, failed = ∞")[-2:] == ["∞", "—"]
    assert "http_5xx" in text
    assert "engine overloaded" in text


@pytest.mark.parametrize("width", [80, 100])
def test_a_long_message_leaves_the_counts_beside_it(analysis: Analysis, width: int) -> None:
    """Only the message is cut, however long it is."""
    said = FailureSample(kind="http_4xx", http_status=400, count=250, example="the prompt is too long; " * 20)
    lines = run_text(replace(analysis, failures=(said,)), width=width).splitlines()
    line = next(line for line in lines if "http_4xx" in line)
    assert re.match(r" +http_4xx +400 +250 +25.0% +the prompt is too long; .*…$", line)
    assert cell_len(line) == width


def test_latency_from_sent_and_from_due_stand_side_by_side(analysis: Analysis) -> None:
    """An open loop shows both; a closed loop has no planned instants, so those rows are not there."""
    lines = [line.strip() for line in run_text(analysis).splitlines()]
    first = next(i for i, line in enumerate(lines) if line.startswith("TTFT  "))
    assert lines[first + 1].startswith("TTFT from due")


def test_a_closed_loop_shows_no_lag(sweep: Sweep) -> None:
    """No row of zeros or dashes for what does not exist."""
    text = run_text(Analysis(summary=sweep.levels[0].summary, curves={}, failures=()))
    assert "from due" not in text
    assert "Schedule lag" not in text


def test_hostile_text_is_inert(hostile: Analysis, hostile_sweep: Sweep) -> None:
    """A server's escape sequences are shown, not obeyed."""
    for text in (run_text(hostile), run_text(hostile, color=True), sweep_text(hostile_sweep)):
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
        assert "\\x1b[2J" in text
    assert "[red]" in run_text(replace(hostile, summary=replace(hostile.summary, name="[red]markup[/red] :smile:"))), (
        "text from outside is not markup"
    )


def test_without_colour_there_is_no_escape(analysis: Analysis, sweep: Sweep) -> None:
    """Plain text for files and pipes, colours on demand."""
    assert "\x1b" not in run_text(analysis)
    assert "\x1b" not in sweep_text(sweep)
    assert "\x1b[" in sweep_text(sweep, color=True)


def test_a_sweep_marks_knee_and_invalid_levels(sweep: Sweep) -> None:
    """The knee's row is marked, an invalid level is marked where its numbers stand."""
    text = sweep_text(sweep)
    assert row(text, "16")[-1] == "◀ knee"
    assert row(text, "64")[-1] == "✗ invalid"
    assert text.startswith("✗ Invalid at 64")
    assert "doubling the load beyond it" in text


def test_equal_and_empty_levels_are_allowed(hostile_sweep: Sweep, empty_sweep: Sweep) -> None:
    """Two levels alike, one without a value, or none at all: a report, not an exception."""
    assert sum(line.strip().startswith("2  ") for line in sweep_text(hostile_sweep).splitlines()) >= 2
    assert "no level has finished" in sweep_text(empty_sweep)


def test_one_request_is_enough(analysis: Analysis) -> None:
    """Three equal values and no tail: shown as they are."""
    one = Distribution(n=1, missing=0, mean=0.1, min=0.1, max=0.1, p50=0.1)
    latency = replace(analysis.summary.latency, ttft_s=one)
    text = run_text(replace(analysis, summary=replace(analysis.summary, latency=latency)))
    assert row(text, "TTFT") == ["TTFT", "1", "0", "100", "100", *["—"] * 5]


@given(
    st.lists(st.none() | st.floats(min_value=0, max_value=1e12), min_size=1, max_size=20),
    st.integers(min_value=1, max_value=60),
)
def test_bars_are_in_proportion(values: list[float | None], cells: int) -> None:
    """A bar is as long as its share of the largest, visible when above 0, never longer than its room."""
    largest = max((value for value in values if value is not None), default=0)
    for value in values:
        drawn = bar(value, values, cells)
        assert len(drawn) <= cells
        if value is None or value == 0:
            assert drawn == ""
        else:
            assert drawn != ""
            assert len(drawn) == pytest.approx(value / largest * cells, abs=1)


def test_levels_of_a_rate_ladder_keep_their_fractions(sweep: Sweep) -> None:
    """Rates of 0.5 and 2.25 stay what they are."""
    levels = (
        SweepLevel(level=0.5, summary=sweep.levels[0].summary),
        SweepLevel(level=2.25, summary=sweep.levels[1].summary),
    )
    text = sweep_text(replace(sweep, variable="request_rate_rps", levels=levels, knee=None))
    assert row(text, "0.5")[0] == "0.5"
    assert row(text, "2.25")[0] == "2.25"


def test_an_open_loop_in_which_nothing_worked_keeps_its_rows(analysis: Analysis, hostile: Analysis) -> None:
    """Latency from due is a row of dashes then, so that nobody takes the load for a closed loop."""
    text = run_text(replace(hostile, summary=replace(hostile.summary, load=analysis.summary.load)))
    assert row(text, "TTFT from due")[-1] == "—"
    assert "Wait for a slot" not in text


def test_what_was_left_out_of_the_data_is_said(analysis: Analysis, sweep: Sweep, manifest: RunManifest) -> None:
    """Rows used, rows left out by reason, repeats, and every note, of a run and of a ladder."""
    data = {"name": "burst.csv", "rows": 1000, "used": 982, "dropped": {"zero_tokens": 18}, "repeats": True}
    told = replace(manifest, data=data | {"notes": ["3 rows are sorted by time"]}, notes=("The API key is used.",))
    for text in (run_text(analysis, told), sweep_text(sweep, told)):
        words = " ".join(text.split())
        assert "burst.csv: 982 of 1000 rows taken; left out: 18 zero tokens; used more than once" in words
        assert "3 rows are sorted by time" in words
        assert "The API key is used." in words


def test_synthetic_data_has_its_notes_and_no_rows(analysis: Analysis, manifest: RunManifest) -> None:
    """There is no file whose rows could be counted; what was drawn is said."""
    made = replace(manifest, data={"name": "synthetic", "format": "synthetic", "rows": 9, "notes": ("drawn so",)})
    text = run_text(analysis, made)
    assert "drawn so" in text
    assert "rows taken" not in text


def test_hostile_data_facts_stay_text(analysis: Analysis, manifest: RunManifest, hostile_text: str) -> None:
    """A file's name or a note cannot move the cursor."""
    odd = {"name": hostile_text, "rows": 1, "used": None, "dropped": {hostile_text: 2}, "notes": hostile_text}
    assert "\x1b" not in run_text(analysis, replace(manifest, data=odd, notes=(hostile_text,)))
