"""`loadgen run` and `sweep` where machine, server, data or user make it hard: right numbers or a clear refusal."""

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.record import Outcome
from loadgen.sim.script import Script
from loadgen.sim.truth import TruthServer, spawn_truth_server
from tests.cli.commands import ANSWER, ChatServer, loadgen
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, chunk, plain

DEAD_PROXY = "http://127.0.0.1:1"
PROXIES = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"), DEAD_PROXY)


@pytest.fixture(scope="module")
def server():
    with spawn_truth_server(Script(ttft_ms=10, gap_ms=2, tokens=5)) as running:
        yield running


def prompts(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps({"prompt": f"question {n}"}) + "\n" for n in range(count)))
    return path


@pytest.mark.parametrize("transport", ["native", "httpx"])
def test_proxies_of_the_environment_are_not_in_the_way(server: TruthServer, tmp_path: Path, transport: str) -> None:
    """Every proxy variable points to a dead port: neither the calls before the load nor the load go there."""
    arguments = ("--url", server.url, "--num-requests", 3, "--transport", transport, "--json")
    done = loadgen("run", *arguments, out=tmp_path, env=PROXIES)
    assert done.code == 0, done.stderr
    assert done.summary["requests"]["completed"] == 3
    assert done.folder.load_manifest().options["proxy"] is None


@pytest.mark.slow
def test_a_rate_beyond_this_machine_is_told_as_it_was(server: TruthServer, tmp_path: Path) -> None:
    """30,000 a second for half a second: what fell due is counted, sent or not, and the measurement is invalid."""
    arguments = ("--request-rate", 30_000, "--burstiness", "inf", "--duration", "500ms", "--json")
    done = loadgen("run", "--url", server.url, *arguments, out=tmp_path)
    assert done.code == 3, done.stderr
    summary, counts = done.summary, done.summary["requests"]
    assert counts["planned"] == 15_000
    assert counts["dropped"] > 0
    assert counts["planned"] == sum(counts[name] for name in ("completed", "failed", "cancelled", "dropped"))
    assert summary["rate"]["offered_rps"] == pytest.approx(30_000)
    assert summary["rate"]["sent_rps"] < 0.95 * 30_000
    assert done.findings["sent_below_offered"] == done.findings["client_lag"] == "invalid"
    assert summary["latency"]["schedule_lag_s"]["min"] >= 0


def test_more_slots_than_descriptors_are_refused_before_any_load(server: TruthServer, tmp_path: Path) -> None:
    """`ulimit -n 128` and 200 slots: the limit is named, nothing is sent, and no server is blamed."""

    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    before = len(server.log().entries)
    arguments = ("--url", server.url, "--concurrency", 200, "--num-requests", 400)
    done = loadgen("run", *arguments, out=tmp_path, before=few_descriptors)
    assert done.code == 2
    assert "200 connections: this process may have 128 open descriptors" in done.stderr
    assert len(server.log().entries) == before


@pytest.mark.slow
def test_a_disk_that_fills_up_in_mid_run_is_loud_and_keeps_the_rest(server: TruthServer, tmp_path: Path) -> None:
    """No file may grow over 8 KiB: the run ends with the file and the reason, and what was stored is reported."""

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    arguments = ("--url", server.url, "--concurrency", 20, "--num-requests", 20_000)
    done = loadgen("run", *arguments, out=tmp_path, before=small_disk)
    assert done.code == 2
    assert "records.jsonl.zst: cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    (folder,) = tmp_path.iterdir()
    report = loadgen("report", folder, "--json", out=tmp_path)
    assert report.code == 0, report.stderr
    assert report.summary["requests"]["completed"] > 50
    assert report.summary["interrupted"] is True


def test_a_disk_that_takes_nothing_is_said_before_any_load(server: TruthServer, tmp_path: Path) -> None:
    """A folder can be made and no byte be written: the path and the reason, and nothing is sent."""

    def full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    before = len(server.log().entries)
    done = loadgen("run", "--url", server.url, "--num-requests", 5, out=tmp_path, before=full_disk)
    assert done.code == 2
    assert "cannot be written: File too large" in done.stderr
    assert str(tmp_path) in done.stderr
    assert len(server.log().entries) == before


@pytest.mark.slow
def test_a_thousand_labels_and_hostile_names_come_through(server: TruthServer, tmp_path: Path) -> None:
    """Markup, control characters and bytes that are no text stay text in every output."""
    hostile = "</td><svg onload=alert(1)><!--\x1b[31m[bold]"
    labels = [part for n in range(1000) for part in ("--label", f"k{n}=<b>{n}")]
    arguments = ("--url", server.url, "--num-requests", 2, "--name", hostile + "\udcff", *labels, "--json")
    done = loadgen("run", *arguments, out=tmp_path)
    assert done.code == 0, done.stderr
    assert len(done.summary["labels"]) == 1000
    page = tmp_path.parent / f"{tmp_path.name}.html"
    text = loadgen("report", done.folder.path, out=tmp_path)
    assert text.code == 0, text.stderr
    assert "\x1b" not in text.stdout
    assert loadgen("report", done.folder.path, "--html", page, out=tmp_path).code == 0
    assert "<svg onload" not in page.read_text(encoding="utf-8")
    assert "<b>7" not in page.read_text(encoding="utf-8")


def test_extra_fields_are_typed_and_the_first_body_is_shown(tmp_path: Path) -> None:
    """`true` and numbers are sent as such, and manifest and page hold the body exactly as it was sent."""
    extra = {"ignore_eos": True, "top_k": 5, "top_p": 0.5, "stop": None, "tag": "4096", "nested": {"a": [1]}}
    with ChatServer() as own:
        arguments = ("--url", own.url, "--num-requests", 2, "--extra-body", json.dumps(extra), "--json")
        done = loadgen("run", *arguments, out=tmp_path)
    assert done.code == 0, done.stderr
    for body in own.bodies:
        assert {name: body[name] for name in extra} == extra
        assert body["ignore_eos"] is True
    assert done.folder.load_manifest().first_request in own.bodies


def test_what_may_be_private_is_not_stored(tmp_path: Path) -> None:
    """Values of headers, also of harmless names, and the user's name in the URL are in no file of the run."""
    with ChatServer() as own:
        url = own.url.replace("http://", "http://somebody:pass-word-1@")
        arguments = ("--url", url, "--num-requests", 2, "-H", "X-Route=rack-7-internal", "--json")
        done = loadgen("run", *arguments, out=tmp_path)
    assert done.code == 0, done.stderr
    assert done.folder.load_manifest().options["header"] == ["X-Route"]
    stored = b"".join(path.read_bytes() for path in done.folder.path.iterdir()) + repr(done.records).encode()
    for private in (b"somebody", b"pass-word-1", b"rack-7-internal"):
        assert private not in stored


def test_a_trace_is_used_row_by_row_and_once(tmp_path: Path) -> None:
    """150 rows and no other option: every row once, in its order, and the terminal tells how many there were."""
    with ChatServer() as own:
        done = loadgen("run", "--url", own.url, "--prompts", prompts(tmp_path / "p.jsonl", 150), out=tmp_path / "runs")
    assert done.code == 0, done.stderr
    assert [body["messages"][0]["content"] for body in own.bodies] == [f"question {n}" for n in range(150)]
    assert "p.jsonl: 150 of 150 rows taken" in done.stdout


def test_data_that_is_too_short_is_repeated_loudly_and_without_cache_hits(tmp_path: Path) -> None:
    """12 requests from 5 rows: said, and no prompt begins as an earlier one does."""
    with ChatServer() as own:
        file = prompts(tmp_path / "p.jsonl", 5)
        done = loadgen("run", "--url", own.url, "--prompts", file, "--num-requests", 12, out=tmp_path / "runs")
    assert done.code == 0, done.stderr
    assert len({body["messages"][0]["content"] for body in own.bodies}) == 12
    assert "used more than once" in done.stdout


@pytest.mark.slow
def test_no_two_prompts_begin_alike_within_and_between_runs(tmp_path: Path) -> None:
    """400 invented prompts of two runs of one command line: 400 beginnings of a few words."""
    with ChatServer() as own:
        for run in ("a", "b"):
            arguments = ("--url", own.url, "--num-requests", 200, "--concurrency", 8, "--input-tokens", 64, "--quiet")
            assert loadgen("run", *arguments, out=tmp_path / run).code == 0
    beginnings = {tuple(body["messages"][0]["content"].split()[:16]) for body in own.bodies}
    assert len(beginnings) == len(own.bodies) == 400


def test_a_server_with_nothing_but_one_route_will_do(tmp_path: Path) -> None:
    """No version, no health, no metrics, and answers of 201 after a 103: measured, with what is not known left out."""
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    answer = (hints, CHUNKED.replace(b"200 OK", b"201 Created"), chunk(ANSWER), LAST_CHUNK)
    with ChatServer(answer=answer) as own:
        done = loadgen("run", "--url", own.url, "--num-requests", 5, "--json", out=tmp_path)
    assert done.code == 0, done.stderr
    assert done.summary["requests"]["completed"] == 5
    assert done.summary["target"]["engine"] is None
    assert done.summary["server"]["scraped"] is False
    assert done.summary["server"]["pages"] == {}


def test_a_refusal_is_one_attempt_and_one_record(tmp_path: Path) -> None:
    """429 with Retry-After, then good: as many requests as were planned, the first a failure with no latency."""
    refusal = plain(b'{"error": "later"}', status="429 Too Many Requests", headers="Retry-After: 3\r\n")
    with ChatServer(answers=[(refusal,)]) as own:
        done = loadgen("run", "--url", own.url, "--num-requests", 4, "--json", out=tmp_path)
    assert done.code == 0, done.stderr
    assert len(own.bodies) == len(done.records) == 4
    assert [record.outcome for record in done.records] == [Outcome.FAILED] + [Outcome.COMPLETED] * 3
    assert done.summary["requests"]["failed_by_kind"] == {"rate_limited": 1}
    assert done.summary["latency"]["e2el_s"]["n"] == 3


@pytest.mark.slow
def test_a_run_in_which_all_failed_can_be_reported_and_exported(server: TruthServer, tmp_path: Path) -> None:
    """Text, page, every export: complete, without a number that was not measured."""
    extra = json.dumps({"truth": {"status": 500}})
    done = loadgen("run", "--url", server.url, "--num-requests", 6, "--extra-body", extra, out=tmp_path)
    assert done.code == 4
    assert "6 failed" in done.stdout
    page = tmp_path.parent / f"{tmp_path.name}.html"
    for command in (
        ("report", "--json", "--html", page),
        ("export", "--format", "csv"),
        ("export", "--format", "vllm"),
    ):
        shown = loadgen(command[0], done.folder.path, *command[1:], out=tmp_path)
        assert shown.code == 0, shown.stderr
        assert "NaN" not in shown.stdout
        assert "Infinity" not in shown.stdout
    assert "http_5xx" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_limits_and_pauses_are_each_levels_own(server: TruthServer, tmp_path: Path) -> None:
    """Half a second a level, 0.4 s between them: every level runs its whole time and says why it ended."""
    arguments = ("--url", server.url, "--concurrency", "2,1", "--duration", "500ms", "--settle", "400ms", "--json")
    done = loadgen("sweep", *arguments, out=tmp_path)
    assert done.code == 0, done.stderr
    (sweep,) = tmp_path.iterdir()
    levels = [json.loads((path / "manifest.json").read_text()) for path in sorted((sweep / "levels").iterdir())]
    assert [level["ended_by"] for level in levels] == ["duration", "duration"]
    for level in levels:
        assert level["window"]["end_ns"] - level["window"]["start_ns"] == 500_000_000
    assert levels[1]["origin_unix_ns"] - levels[0]["ended_unix_ns"] >= 350_000_000


@pytest.mark.slow
def test_a_sweep_killed_in_a_later_level_keeps_the_earlier_ones(server: TruthServer, tmp_path: Path) -> None:
    """SIGKILL in the second level: the first is whole, and `report` renders the ladder as far as it came."""
    line = [sys.executable, "-m", "loadgen", "sweep", "--url", server.url, "--out", str(tmp_path), "--quiet"]
    line += ["--concurrency", "1,2", "--num-requests", "60", "--settle", "0s", "--warmup-requests", "1"]
    process = subprocess.Popen([*line, "--extra-body", json.dumps({"truth": {"tokens": 20}})])
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        levels = [RunFolder(path.parent) for path in tmp_path.glob("*/levels/002-2/records.jsonl.zst")]
        if levels and sum(1 for _ in levels[0].records()) > 3:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=20) == -signal.SIGKILL
    (sweep,) = tmp_path.iterdir()
    report = loadgen("report", sweep, "--json", out=tmp_path)
    assert report.code == 0, report.stderr
    first, second = report.summary["levels"]
    assert first["summary"]["requests"]["completed"] == 60
    assert first["summary"]["interrupted"] is False
    assert second["summary"]["interrupted"] is True
    assert 0 < second["summary"]["requests"]["completed"] < 60
