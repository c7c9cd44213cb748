"""`loadgen run` and `loadgen sweep` as a user calls them, against the known-truth server."""

import itertools
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.record import Outcome
from loadgen.core.request import Phase
from loadgen.sim.script import Script
from loadgen.sim.truth import TruthServer, spawn_truth_server
from tests.cli.commands import Command, loadgen

QUICK = Script(ttft_ms=30, gap_ms=5, tokens=8)


@pytest.fixture(scope="module")
def server() -> Iterator[TruthServer]:
    with spawn_truth_server(QUICK) as running:
        yield running


def run(server: TruthServer, out: Path, *arguments: object, env: dict[str, str] | None = None) -> Command:
    return loadgen("run", "--json", "--url", server.url, *arguments, out=out, env=env)


def prompts(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def body(**truth: Any) -> str:
    return json.dumps({"truth": truth})


def test_a_run_reports_what_the_server_did(server: TruthServer, tmp_path: Path) -> None:
    """Four slots, forty requests: the server got each once, and TTFT and TPOT are those of its script."""
    before = len(server.log().entries)
    done = run(server, tmp_path, "--concurrency", 4, "--num-requests", 40, "--name", "quick", "--label", "a=b")
    assert done.code == 0, done.stderr
    summary = done.summary
    assert summary["schema"] == "loadgen.summary/1"
    assert (summary["name"], summary["labels"]) == ("quick", {"a": "b"})
    assert summary["requests"]["planned"] == summary["requests"]["completed"] == 40
    assert summary["tokens"]["output"] == 40 * 8
    assert summary["concurrency"]["peak"] == 4
    entries = {entry.request_id: entry for entry in server.log().entries[before:]}
    assert len(entries) == 40
    assert {record.request_id for record in done.records} == set(entries)
    for record in done.records:
        assert len(record.event_ns) == 8
        assert record.output_tokens == 8
    assert summary["latency"]["ttft_s"]["p50"] == pytest.approx(0.030, abs=0.01)
    assert summary["latency"]["tpot_s"]["p50"] == pytest.approx(0.005, abs=0.002)
    assert summary["load"]["seed"] == done.folder.load_manifest().load.seed


@pytest.mark.slow
def test_report_and_run_give_the_same_numbers(server: TruthServer, tmp_path: Path) -> None:
    """`loadgen report` renders from manifest and records alone, and agrees with summary.json to the last digit."""
    done = run(server, tmp_path, "--concurrency", 2, "--num-requests", 20, "--warmup-requests", 4)
    (done.folder.path / "summary.json").rename(tmp_path.parent / f"{tmp_path.name}-summary.json")
    line = [sys.executable, "-m", "loadgen", "report", str(done.folder.path), "--json"]
    again = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(again.stdout) == done.summary


@pytest.mark.slow
def test_two_runs_send_different_prompts_and_one_seed_the_same(tmp_path: Path) -> None:
    """A fresh seed for each run, so that no prompt is found in a cache; the same seed repeats the run's bodies."""
    bodies = []
    for index, seed in enumerate(([], [], ["--seed", 7], ["--seed", 7])):
        with spawn_truth_server(QUICK) as own:
            done = run(own, tmp_path / str(index), "--num-requests", 3, *seed)
        assert done.code == 0, done.stderr
        first = done.folder.load_manifest().first_request
        assert first is not None
        bodies.append(first["messages"])
    assert bodies[0] != bodies[1]
    assert bodies[2] == bodies[3]


@pytest.mark.slow
def test_an_open_loop_keeps_its_rate_whatever_the_latency(tmp_path: Path) -> None:
    """40 a second with answers of 0.4 s: sent at the offered rate, about 16 in flight, without a cap."""
    with spawn_truth_server(Script(ttft_ms=400, gap_ms=0, tokens=1)) as slow:
        done = run(slow, tmp_path, "--request-rate", 40, "--burstiness", "inf", "--num-requests", 60)
    assert done.code == 0, done.stderr
    summary = done.summary
    assert summary["rate"]["offered_rps"] == pytest.approx(40, rel=0.01)
    assert summary["rate"]["sent_rps"] == pytest.approx(40, rel=0.03)
    assert summary["concurrency"]["peak"] >= 14
    due = [record.due_ns for record in done.records]
    assert {b - a for a, b in itertools.pairwise(due) if a is not None and b is not None} == {25_000_000}


@pytest.mark.slow
def test_a_cap_is_said_and_not_held_against_the_client(tmp_path: Path) -> None:
    """Behind a cap of one, latency from due grows while TTFT does not; the verdict names the cap and stays valid."""
    with spawn_truth_server(Script(ttft_ms=100, gap_ms=0, tokens=1)) as slow:
        done = run(slow, tmp_path, "--request-rate", 20, "--max-concurrency", 1, "--num-requests", 30)
    summary = done.summary
    assert done.code == 0, done.stderr
    assert summary["latency"]["ttft_s"]["max"] < 0.4
    assert summary["latency"]["ttft_from_due_s"]["max"] > 0.5
    assert summary["concurrency"]["peak"] == 1
    assert "cap_limited" in {finding["kind"] for finding in summary["verdict"]["findings"]}


@pytest.mark.slow
def test_two_hundred_and_forty_requests_are_really_in_flight(tmp_path: Path) -> None:
    """No hidden limit of a connection pool: the server holds all 240 at once."""
    with spawn_truth_server(Script(ttft_ms=1500, gap_ms=0, tokens=1)) as slow:
        done = run(slow, tmp_path, "--concurrency", 240, "--num-requests", 240)
    assert done.code == 0, done.stderr
    assert done.summary["concurrency"]["peak"] == 240
    assert done.summary["latency"]["e2el_s"]["max"] < 2.5


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "httpx"])
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_both_transports_take_both_streams(server: TruthServer, tmp_path: Path, transport: str, endpoint: str) -> None:
    """The same run over either transport; the record of the manifest says who stamped."""
    done = run(server, tmp_path, "--endpoint", endpoint, "--transport", transport, "--num-requests", 10)
    assert done.code == 0, done.stderr
    assert done.summary["requests"]["completed"] == 10
    expected = {"native": ("kernel", "user"), "httpx": ("coroutine",)}[transport]
    assert done.summary["client"]["timing_source"] in expected


@pytest.mark.slow
def test_speculative_streams_are_counted_in_tokens(server: TruthServer, tmp_path: Path) -> None:
    """Events of 1 and 3 tokens in turn: TPOT is by tokens, the gap between events is ICL, and there is no ITL."""
    extra = body(tokens=24, tokens_per_event=[1, 3], gap_ms=20)
    arguments = ("--num-requests", 12, "--tokens-per-event", "usage", "--extra-body", extra)
    done = run(server, tmp_path, *arguments)
    assert done.code == 0, done.stderr
    latency = done.summary["latency"]
    assert {record.event_tokens for record in done.records} == {(1, 3) * 6}
    assert latency["icl_s"]["p50"] == pytest.approx(0.020, abs=0.004)
    assert latency["tpot_s"]["p50"] == pytest.approx(11 * 0.020 / 23, abs=0.003)
    assert latency["itl_s"]["n"] == 0
    assert done.summary["speculation"]["origin"] == "stream"


FAULTS = [
    ({"status": 400}, "http_4xx", 400),
    ({"status": 429, "retry_after_s": 1}, "rate_limited", 429),
    ({"status": 503}, "http_5xx", 503),
    ({"fault": "error_event"}, "server_error_event", 200),
    ({"fault": "truncated"}, "truncated", 200),
    ({"fault": "no_finish", "done_marker": False}, "truncated", 200),
    ({"fault": "reset"}, "read", 200),
    ({"fault": "stall"}, "idle_timeout", 200),
    ({"fault": "empty"}, "empty", 200),
    ({"fault": "wrong_type"}, "protocol", 200),
]


def test_each_failure_of_a_server_is_data_of_its_kind(server: TruthServer, tmp_path: Path) -> None:
    """One request fails in each way, as many succeed: each failure has its kind, the others are measured, exit 0."""
    truths = [truth for pair in FAULTS for truth in (pair[0], {})]
    messages = [{"role": "user", "content": "say"}]
    file = prompts(tmp_path / "bodies.jsonl", *({"body": {"messages": messages, "truth": truth}} for truth in truths))
    done = run(server, tmp_path / "runs", "--prompts", file, "--concurrency", 4, "--idle-timeout", "500ms")
    assert done.code == 0, done.stderr
    counts = done.summary["requests"]
    assert (counts["planned"], counts["completed"], counts["failed"]) == (20, 10, 10)
    assert sum(counts["failed_by_kind"].values()) == 10
    assert done.summary["latency"]["e2el_s"]["n"] == 10
    for record, (_, kind, status) in zip(done.records[::2], FAULTS, strict=True):
        assert record.outcome is Outcome.FAILED
        assert record.failure is not None
        assert (record.failure.kind, record.failure.http_status) == (kind, status)
        assert record.sent_ns is not None
        assert record.closed_ns is not None
    assert {record.outcome for record in done.records[1::2]} == {Outcome.COMPLETED}


def test_a_share_of_failures_can_be_made_a_gate(server: TruthServer, tmp_path: Path) -> None:
    """Half of the requests fail against a bound of a tenth: exit 1, with the summary as ever."""
    rows = [{"body": {"messages": [{"role": "user", "content": "say"}], "truth": {"status": s}}} for s in (500, 200)]
    file = prompts(tmp_path / "bodies.jsonl", *rows)
    done = run(server, tmp_path / "runs", "--prompts", file, "--max-error-ratio", 0.1)
    assert done.code == 1
    assert done.summary["requests"]["failed"] == 1


def test_a_server_that_is_not_there_is_said_before_anything_else(tmp_path: Path) -> None:
    """Nobody listens: exit 4, one line, no run folder left behind."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        done = loadgen("run", "--json", "--url", url, "--num-requests", 5, out=tmp_path / "runs")
    assert done.code == 4
    assert url in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_nothing_completed_is_exit_4_with_a_whole_report(server: TruthServer, tmp_path: Path) -> None:
    """Every request fails: the summary is complete with nulls, the run folder stays, the exit code is 4."""
    done = run(server, tmp_path, "--num-requests", 10, "--extra-body", body(status=500))
    assert done.code == 4
    assert done.summary["latency"]["ttft_s"]["p50"] is None
    assert done.summary["verdict"]["valid"] is False
    assert "NaN" not in done.stdout
    assert len(done.records) == 10


def test_a_server_that_refuses_all_is_left_alone(server: TruthServer, tmp_path: Path) -> None:
    """All 401: the run ends after the first twenty or so instead of sending a thousand."""
    done = run(server, tmp_path, "--num-requests", 1000, "--concurrency", 2, "--extra-body", body(status=401))
    assert done.code == 4
    assert len(done.records) < 60
    assert done.folder.load_manifest().ended_by == "refused"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--concurrency", "x"), "--concurrency"),
        (("--endpoint", "chats"), "--endpoint"),
        (("--model",), "--model"),
        (("--prompts", "absent.jsonl"), "absent.jsonl"),
        (("--trace", "absent.csv", "--replay"), "absent.csv"),
        (("--header", "X-A=b\r\nX-C: d"), "X-A"),
        (("--api-key-env", "LOADGEN_NO_SUCH_KEY"), "LOADGEN_NO_SUCH_KEY"),
        (("--no-such-option",), "--no-such-option"),
    ],
)
def test_wrong_use_is_exit_2_and_sends_nothing(
    server: TruthServer, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """The message names what was wrong; the server never hears of it; no folder is left."""
    before = len(server.log().entries)
    done = run(server, tmp_path / "runs", *arguments)
    assert done.code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(server.log().entries) == before
    assert not (tmp_path / "runs").exists()


def test_a_bad_row_stops_before_the_first_request(server: TruthServer, tmp_path: Path) -> None:
    """Row 3 of 4 is broken: file and line are named, nothing is sent; with skip it is counted and the rest sent."""
    file = tmp_path / "prompts.jsonl"
    file.write_text('{"prompt": "a"}\n{"prompt": "b"}\n{"prompt": 7}\n{"prompt": "d"}\n')
    before = len(server.log().entries)
    done = run(server, tmp_path / "runs", "--prompts", file)
    assert done.code == 2
    assert f"{file}:3" in done.stderr
    assert len(server.log().entries) == before
    skipped = run(server, tmp_path / "skipped", "--prompts", file, "--on-bad-row", "skip")
    assert skipped.code == 0, skipped.stderr
    assert skipped.summary["requests"]["planned"] == 3
    assert sum(skipped.folder.load_manifest().data["dropped"].values()) == 1


def test_a_file_of_lengths_is_no_prompts_file(server: TruthServer, tmp_path: Path) -> None:
    """Rows without text given as --prompts would become invented text in silence: exit 2 instead."""
    file = tmp_path / "trace.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,10,5\n")
    done = run(server, tmp_path / "runs", "--prompts", file)
    assert done.code == 2
    assert "--trace" in done.stderr


def test_rows_beyond_the_models_context_are_said_before_they_are_refused(server: TruthServer, tmp_path: Path) -> None:
    """The server tells its context length: the run notes how many requests exceed it, and what to do."""
    rows = [{"timestamp": n / 10, "input_tokens": tokens, "output_tokens": 4} for n, tokens in enumerate((10, 200_000))]
    file = prompts(tmp_path / "trace.jsonl", *rows)
    done = run(server, tmp_path / "runs", "--trace", file, "--replay")
    assert any("1 of 2 requests" in note and "--max-context" in note for note in done.folder.load_manifest().notes)


def test_a_conversation_goes_on_from_the_real_answers(server: TruthServer, tmp_path: Path) -> None:
    """Two turns: the second request holds the first question, the server's answer and the second question."""
    file = prompts(tmp_path / "talk.jsonl", {"turns": ["first", "second"], "category": "talk"})
    done = run(server, tmp_path / "runs", "--prompts", file, "--extra-body", body(tokens=2, text=" yes"), "--save-text")
    assert done.code == 0, done.stderr
    first, second = done.records
    assert (first.turn, second.turn, second.category) == (0, 1, "talk")
    assert first.text == " yes yes"
    assert second.sent_ns is not None
    assert first.closed_ns is not None
    assert second.sent_ns >= first.closed_ns
    assert (second.input_tokens or 0) > (first.input_tokens or 0)


def test_a_replay_keeps_the_times_of_its_trace(server: TruthServer, tmp_path: Path) -> None:
    """Rows at 300.0, 300.4 and 301.0 s at twice the speed are due 0, 0.2 and 0.5 s after the first."""
    rows = [{"timestamp": at, "prompt": f"at {at}", "max_tokens": 2} for at in (300.0, 300.4, 301.0)]
    file = prompts(tmp_path / "trace.jsonl", *rows)
    done = run(server, tmp_path / "runs", "--trace", file, "--replay", "--speed", 2)
    assert done.code == 0, done.stderr
    due = [record.due_ns or 0 for record in done.records]
    assert [at - due[0] for at in due] == [0, 200_000_000, 500_000_000]
    for record in done.records:
        assert record.sent_ns is not None
        assert 0 <= record.sent_ns - (record.due_ns or 0) < 50_000_000


def test_warm_up_is_recorded_and_not_counted(server: TruthServer, tmp_path: Path) -> None:
    """Six warm-up requests and ten measured ones: sixteen records, ten in the summary."""
    done = run(server, tmp_path, "--concurrency", 3, "--num-requests", 10, "--warmup-requests", 6)
    assert [record.phase for record in done.records].count(Phase.WARMUP) == 6
    assert done.summary["requests"]["planned"] == 10
    assert done.summary["warmup_requests"] == 6
    assert done.summary["latency"]["ttft_s"]["n"] == 10


@pytest.mark.slow
def test_an_objective_that_is_missed_is_exit_1(server: TruthServer, tmp_path: Path) -> None:
    """TTFT of 30 ms against a limit of 5 ms fails; against one of 500 ms passes; attainment is in the summary."""
    slo = ("--num-requests", 10, "--slo-attainment", 0.9, "--slo")
    missed = run(server, tmp_path / "missed", *slo, "ttft=5ms")
    assert missed.code == 1
    assert missed.summary["slo"]["attainment_ratio"] == 0.0
    met = run(server, tmp_path / "met", *slo, "ttft=500ms,e2el=5s")
    assert met.code == 0
    assert met.summary["slo"]["objectives"] == {"ttft_s": 0.5, "e2el_s": 5.0}


def test_no_secret_reaches_a_file_or_a_terminal(server: TruthServer, tmp_path: Path) -> None:
    """A key from the environment and a password in the URL are in no file and no output, also when the server fails."""
    url = server.url.replace("http://", "http://someone:pa55word-xyz@")
    environment = {"SOME_KEY": "sk-very-secret-0123456789"}
    arguments = ("--api-key-env", "SOME_KEY", "-H", "X-Api-Token=tok-hidden-42", "--num-requests", 4)
    done = loadgen(
        "run", "--json", "--url", url, *arguments, "--extra-body", body(status=500), out=tmp_path, env=environment
    )
    everything = done.stdout + done.stderr
    for path in done.folder.path.iterdir():
        everything += path.read_bytes().decode("latin-1")
    everything += repr(done.records)
    for secret in ("sk-very-secret-0123456789", "pa55word-xyz", "tok-hidden-42"):
        assert secret not in everything


def begin(server: TruthServer, out: Path, *arguments: object) -> "subprocess.Popen[str]":
    line = [sys.executable, "-m", "loadgen", "run", "--url", server.url, "--out", out, "--json", *arguments]
    return subprocess.Popen(list(map(str, line)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_records(out: Path, count: int) -> RunFolder:
    """Waits until the run has so many records on the disk."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for path in out.glob("*/records.jsonl.zst"):
            folder = RunFolder.open(path.parent)
            if sum(1 for _ in folder.records()) >= count:
                return folder
        time.sleep(0.05)
    raise AssertionError("the run never had that many records")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_drains_saves_and_ends_with_130(server: TruthServer, tmp_path: Path, number: int) -> None:
    """After a first signal nothing more is sent, answers finish, summary and report are whole."""
    process = begin(server, tmp_path, "--concurrency", 4, "--num-requests", 100_000)
    folder = wait_for_records(tmp_path, 8)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    summary = json.loads(stdout)
    assert summary["interrupted"] is True
    assert summary["requests"]["cancelled"] == 0
    assert summary["requests"]["planned"] == sum(1 for _ in folder.records())
    assert folder.load_summary().interrupted


@pytest.mark.slow
def test_a_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    """Answers of a minute: two signals end the run within seconds; what was in flight is cancelled, not lost."""
    with spawn_truth_server(Script(ttft_ms=20, gap_ms=1000, tokens=60)) as slow:
        process = begin(slow, tmp_path, "--concurrency", 3, "--num-requests", 30)
        deadline = time.monotonic() + 20
        while slow.log().entries == [] and time.monotonic() < deadline and not list(tmp_path.glob("*/manifest.json")):
            time.sleep(0.1)
        time.sleep(1.0)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    assert json.loads(stdout)["requests"]["cancelled"] == 3


@pytest.mark.slow
def test_a_killed_run_keeps_every_record_up_to_the_kill(server: TruthServer, tmp_path: Path) -> None:
    """SIGKILL in the middle: all that had ended is readable, and `report` renders it as a run that was cut off."""
    process = begin(server, tmp_path, "--concurrency", 8, "--num-requests", 100_000)
    wait_for_records(tmp_path, 40)
    process.kill()
    process.communicate(timeout=20)
    (path,) = tmp_path.iterdir()
    folder = RunFolder.open(path)
    records = list(folder.records())
    assert len(records) >= 40
    assert folder.truncated
    line = [sys.executable, "-m", "loadgen", "report", str(path), "--json"]
    report = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert report.returncode == 0, report.stderr
    assert json.loads(report.stdout)["requests"]["completed"] == len(records)
    assert json.loads(report.stdout)["interrupted"] is True


def test_a_folder_that_cannot_be_written_is_said_before_any_load(server: TruthServer, tmp_path: Path) -> None:
    """The path of a file as output folder: exit 2, the path in the message, nothing sent."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    before = len(server.log().entries)
    done = run(server, blocked)
    assert done.code == 2
    assert str(blocked) in done.stderr
    assert len(server.log().entries) == before


@pytest.mark.slow
def test_a_sweep_has_one_summary_a_level(server: TruthServer, tmp_path: Path) -> None:
    """Levels 1, 2 and 4: a run folder each, exact peaks, no prompt of one level in another, sweep.json as printed."""
    arguments = ("--url", server.url, "--concurrency", "1,2,4", "--num-requests", 12, "--settle", "0s")
    done = loadgen("sweep", "--json", *arguments, out=tmp_path)
    assert done.code == 0, done.stderr
    sweep = done.summary
    assert sweep["schema"] == "loadgen.sweep/1"
    assert [level["level"] for level in sweep["levels"]] == [1, 2, 4]
    assert [level["summary"]["concurrency"]["peak"] for level in sweep["levels"]] == [1, 2, 4]
    assert all(level["summary"]["requests"]["completed"] == 12 for level in sweep["levels"])
    (path,) = tmp_path.iterdir()
    assert path.name == sweep["sweep_id"]
    assert path.name.startswith("sweep-"), "told from a run's folder by its name"
    assert json.loads((path / "sweep.json").read_text()) == sweep
    manifests = [RunFolder.open(level).load_manifest() for level in sorted((path / "levels").iterdir())]
    assert len({json.dumps(manifest.first_request) for manifest in manifests}) == 3
    assert len({manifest.run_id for manifest in manifests}) == 3


@pytest.mark.slow
def test_a_sweep_interrupted_between_levels_says_what_it_has(server: TruthServer, tmp_path: Path) -> None:
    """Ctrl-C in the pause after the first level: exit 130, one level printed of the two that were asked for."""
    arguments = ("--url", server.url, "--concurrency", "1,2", "--num-requests", "12", "--settle", "60s")
    line = [sys.executable, "-m", "loadgen", "sweep", *arguments, "--out", str(tmp_path), "--json"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob("*/sweep.json")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 130, stderr
    assert [level["level"] for level in json.loads(stdout)["levels"]] == [1]


def test_environment_and_file_give_options_too(server: TruthServer, tmp_path: Path) -> None:
    """A YAML file and LOADGEN_ variables are the same options; the command line wins."""
    file = tmp_path / "run.yaml"
    file.write_text(f"url: {server.url}\nconcurrency: 2\nnum_requests: 50\n")
    arguments = ("--config", file, "--num-requests", 6)
    done = loadgen("run", "--json", *arguments, out=tmp_path / "runs", env={"LOADGEN_NAME": "named"})
    assert done.code == 0, done.stderr
    assert done.summary["name"] == "named"
    assert done.summary["load"]["concurrency"] == 2
    assert done.summary["requests"]["planned"] == 6


def test_without_streaming_there_is_whole_answer_latency_only(server: TruthServer, tmp_path: Path) -> None:
    """`--no-stream`: no TTFT and no TPOT, an E2EL, and a remark in place of zeros."""
    done = run(server, tmp_path, "--no-stream", "--num-requests", 5)
    assert done.code == 0, done.stderr
    latency = done.summary["latency"]
    assert latency["ttft_s"]["n"] == latency["tpot_s"]["n"] == 0
    assert latency["ttft_s"]["p50"] is None
    assert latency["e2el_s"]["n"] == 5
