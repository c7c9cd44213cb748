"""`loadgen trace`: what it prints, writes, refuses, and its exit codes."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.app import run_command_line
from loadgen.cli.reading import Reading
from loadgen.cli.trace_text import facts_text
from loadgen.core.traces.facts import RateProfile, TraceFacts

HEADER = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type"
ROWS = [
    "1000.0,s1,8,GPT-4,100,20,120,Conversation log",
    "1010.0,s1,1,GPT-4,150,30,180,Conversation log",
    "1020.0,,,ChatGPT,0,0,0,API log",
    "1030.0,s2,2,ChatGPT,70,10,80,Conversation log",
    "1090.0,,,ChatGPT,9000,10,9010,API log",
]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "burst.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_inspect_json_has_the_agreed_keys(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object on stdout, nothing else."""
    assert run_command_line(["trace", "inspect", str(trace), "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert {key: out[key] for key in ("format", "rows", "used", "dropped", "span_s", "sessions")} == {
        "format": "burstgpt",
        "rows": 5,
        "used": 4,
        "dropped": {"zero_tokens": 1},
        "span_s": 90.0,
        "sessions": 2,
    }
    assert (out["input_tokens"], out["output_tokens"]) == (9_320, 70)
    assert out["text"] == "invented"


def test_inspect_for_people_shows_counts_lengths_and_arrivals(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Used of total, what was left out, sessions, percentiles, the rate profile."""
    assert run_command_line(["trace", "inspect", str(trace)]) == 0
    out = capsys.readouterr().out
    assert "5, used 4; left out: 1 zero tokens" in out
    assert "2 sessions, the longest of 2 turns" in out
    assert re.search(r"input tokens +9320 +2330.0 +70 +125 +2362", out)
    assert "one column is 2 s" in out
    assert "acceptance measured on them means nothing" in out


def test_convert_writes_the_native_form(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Times from 0, sessions, waits after the answer; stdout stays empty, stderr says what was written."""
    out = tmp_path / "out.jsonl"
    assert run_command_line(["trace", "convert", str(trace), "-o", str(out)]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"wrote 4 requests to {out}\n")
    rows = rows_of(out)
    assert [row["timestamp"] for row in rows] == [0, 10, 30, 90]
    assert [row.get("session_id") for row in rows] == ["s1", "s1", "s2", None]
    assert [row.get("think_s") for row in rows] == [None, 2.0, None, None]
    assert [row["input_tokens"] for row in rows] == [100, 150, 70, 9_000]
    assert run_command_line(["trace", "inspect", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["span_s"] == 90


def test_sample_cuts_a_part(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Window, context, speed; the printed facts are those of the part."""
    out = tmp_path / "out.jsonl"
    command = ["trace", "sample", str(trace), "-o", str(out), "--from", "0s", "--to", "1m", "--speed", "2"]
    assert run_command_line([*command, "--max-context", "1000", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [row["timestamp"] for row in rows_of(out)] == [0, 5, 15]
    assert rows_of(out)[1]["think_s"] == 1.0
    assert facts["used"] == 3
    assert facts["dropped"] == {"zero_tokens": 1, "over_context": 1}
    assert (facts["part"]["to_s"], facts["part"]["speed"]) == (60, 2)


def test_sample_keeps_sessions_whole(trace: Path, tmp_path: Path) -> None:
    """A limit takes both turns of the first session; a share takes a session or leaves it."""
    out = tmp_path / "out.jsonl"
    assert run_command_line(["trace", "sample", str(trace), "-o", str(out), "--limit", "2"]) == 0
    assert [row["session_id"] for row in rows_of(out)] == ["s1", "s1"]
    for seed in range(6):
        arguments = ["trace", "sample", str(trace), "-o", str(out), "--thin", "0.7", "--seed", str(seed)]
        assert run_command_line(arguments) == 0
        names = [row.get("session_id") for row in rows_of(out)]
        assert names.count("s1") in (0, 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "soon"], "--from: expected a duration"),
        (["--to", "5x"], "--to: expected a duration"),
        (["--from", "60s", "--to", "30s"], "expected a time after 60 s"),
        (["--thin", "2"], "thin: expected a share"),
        (["--speed", "0"], "speed: expected a factor above 0"),
        (["--limit", "0"], "limit: expected at least 1"),
        (["--from", "1h"], "the chosen part holds no row"),
        (["--on-bad-row", "ignore"], "--on-bad-row: expected stop or skip"),
        (["--trace-format", "csv"], "trace format: expected auto, azure"),
        (["--trace-format", "azure"], "burst.csv:1: field 'ContextTokens'"),
    ],
)
def test_wrong_options_end_with_2_and_one_line(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """The option, what was expected, and no file written."""
    out = tmp_path / "out.jsonl"
    assert run_command_line(["trace", "sample", str(trace), "-o", str(out), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("loadgen: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not out.exists()


def test_a_bad_row_ends_with_2_or_is_counted(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """File, line, field and expectation; with skip the count and the first of its kind."""
    trace.write_text(trace.read_text() + "1100.0,s3,2,GPT-4,many,10,20,API log\n")
    assert run_command_line(["trace", "inspect", str(trace)]) == 2
    fault = f"{trace}:7: field 'Request tokens': expected a whole number of tokens, got 'many'"
    assert capsys.readouterr().err == f"loadgen: {fault}\n"
    assert run_command_line(["trace", "inspect", str(trace), "--on-bad-row", "skip", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["dropped"] == {"zero_tokens": 1, "bad_value": 1}
    assert out["first_dropped"] == {"bad_value": fault}


@pytest.mark.parametrize("command", [["convert"], ["sample", "--limit", "1"]])
def test_the_input_is_never_overwritten(trace: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    """Naming it as the output is refused."""
    before = trace.read_bytes()
    assert run_command_line(["trace", command[0], str(trace), "-o", str(trace), *command[1:]]) == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert trace.read_bytes() == before


def test_a_missing_file_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the name and the reason."""
    assert run_command_line(["trace", "inspect", str(tmp_path / "none.csv")]) == 2
    assert "none.csv: cannot be read: No such file" in capsys.readouterr().err


def facts(**changed: Any) -> TraceFacts:
    values: dict[str, Any] = {
        "name": "[red]trap.jsonl",
        "format": "native",
        "rows": 3,
        "used": 3,
        "dropped": {},
        "requests": 3,
        "conversations": 3,
        "sessions": 0,
        "longest_session": None,
        "span_s": None,
        "mean_rate_rps": None,
        "input_tokens": None,
        "output_tokens": None,
        "input_lengths": None,
        "output_lengths": None,
        "prompt_characters": None,
        "duplicate_timestamps": None,
        "largest_burst": None,
        "resolution_s": None,
        "rate_profile": None,
        "text": "real",
        "notes": ("keys that are not used: [bold]x[/bold]",),
    }
    return TraceFacts(**(values | changed))


def test_text_of_a_file_is_not_markup() -> None:
    """Names and keys are shown as they are."""
    text = facts_text(facts(), width=80, color=False)
    assert "[red]trap.jsonl" in text
    assert "[bold]x[/bold]" in text


def test_the_profile_has_a_bar_for_every_bin_with_rows() -> None:
    """Empty bins are blank, the highest is the highest bar; ASCII where the terminal has no more."""
    profile = RateProfile(bin_s=1.0, requests=(0, 1, 4, 8))
    made = facts(span_s=4.0, mean_rate_rps=1.0, rate_profile=profile)
    assert "arrivals   ▁▄█\n" in facts_text(made, width=80, color=False)
    plain = facts_text(made, width=80, color=False, unicode=False)
    assert plain.isascii()
    assert "arrivals   _-#\n" in plain


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_quiet_at_first_and_then_sparing() -> None:
    """Nothing in the first two seconds; on a pipe a line each ten, on a terminal one line redrawn and wiped."""
    for stream, expected in (
        (io.StringIO(), "reading x: 30%\nreading x: 90%\n"),
        (Terminal(), "\rreading x: 30%\rreading x: 40%\rreading x: 90%\r\033[K"),
    ):
        now = [0.0]
        with Reading("reading x", stream=stream, now_s=lambda now=now: now[0]) as progress:  # type: ignore[misc]
            for second, done in ((0.5, 10), (1.9, 20), (3.0, 30), (5.0, 40), (14.0, 90)):
                now[0] = second
                progress(done, 100)
        assert stream.getvalue() == expected


def test_a_quick_file_shows_no_progress() -> None:
    """Not even the wiping of a line."""
    stream = Terminal()
    with Reading("reading x", stream=stream, now_s=lambda: 0.0) as progress:
        progress(1, 1)
    assert stream.getvalue() == ""
