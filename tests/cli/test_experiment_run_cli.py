"""`loadgen experiment run` as a user runs it."""

import asyncio
import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from loadgen.cli.app import run_command_line
from loadgen.cli.experiment_progress import ExperimentProgress
from loadgen.engine.live import LiveCounts
from tests.wiring.experiments import begun, experiment_file, little


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """The command, run in this process: exit code, what it printed, what it told."""
    code = run_command_line(["experiment", "run", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_an_experiment_and_its_resumption(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line on stderr for each cell; the report, what became of each cell and where it is on stdout, the report as a
    page, too; as JSON, each cell with its state. A finished one that is resumed says the same again."""
    path = experiment_file(tmp_path, {"baseline": little()}, noise="aa", load={"concurrency": [1]})
    code, out, err = command(capsys, path, "--out", tmp_path / "out")
    folder = begun(path).path
    assert code == 0
    assert "run 1/2 · baseline · concurrency 1 · repeat 1/1 · 4/4 requests in " in err
    assert " · about 0 s left\n" in err
    assert out.startswith("✓ Valid")
    assert "\na little one: 2 of 2 cells are measured\n  ! not verified to be equal, since" in out
    assert f"report to look at: {folder / 'report.html'}" in err
    assert (folder / "report.html").is_file()
    assert out.endswith(f"\nsaved in {folder}\n")
    code, out, err = command(capsys, path, "--resume", folder, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["schema"], found["name"], found["path"]) == ("loadgen.outcome/1", "a little one", str(folder))
    assert found["cells"][1] == {
        "cell": "r1-baseline-again/c1",
        "state": "finished",
        "valid": True,
        "reason": None,
    }


@pytest.mark.slow
def test_a_gate_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 although all was measured, also where nothing else is printed; one that is kept changes nothing."""
    arms = {"baseline": little(), "other": little()}
    for gate, expected in (("requests_per_s < 100x", 1), ("requests_per_s > 100x", 0)):
        path = experiment_file(tmp_path, arms, load={"concurrency": [1]}, gates=[gate])
        code, out, err = command(capsys, path, "--out", tmp_path / f"out{expected}", "--quiet")
        assert (code, out) == (expected, "")
        assert ("gate failed: other at concurrency 1: requests_per_s is " in err) == bool(expected)


@pytest.mark.slow
def test_an_arm_that_answers_nothing_passes_no_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 with why, though the gate is of TPOT alone: by the run, and by the report of its folder. Without a
    gate it is 4, since nothing completed."""
    arms = {"baseline": little(), "other": little("refuse=1")}
    path = experiment_file(tmp_path, arms, load={"concurrency": [1]}, gates=["tpot_s.mean > 1000x"])
    said = "gate failed: other at concurrency 1: tpot_s.mean cannot be judged: it has no value"
    code, out, err = command(capsys, path, "--out", tmp_path / "out")
    assert (code, said in err) == (1, True)
    assert "\na little one: 1 of 2 cells are measured, 1 ran with nothing completed\n" in out
    assert "r1-other/c1: ran, and nothing completed (http_5xx 4)" in out
    assert run_command_line(["experiment", "report", str(begun(path).path)]) == 1
    capsys.readouterr()
    path = experiment_file(tmp_path, arms, load={"concurrency": [1]})
    assert command(capsys, path, "--out", tmp_path / "ungated")[0] == 4


@pytest.mark.slow
def test_a_failed_arm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 4, and how to go on; --quiet prints nothing at all."""
    path = experiment_file(tmp_path, {"baseline": little(), "other": little("dead")}, load={"concurrency": [1]})
    code, out, err = command(capsys, path, "--out", tmp_path / "out")
    assert code == 4
    assert "loadgen: r1-other/c1 failed: " in err
    assert "\na little one: 1 of 2 cells are measured, 1 failed\n" in out
    assert f"the rest can be run with: loadgen experiment run {path} --resume {begun(path).path}\n" in out
    assert command(capsys, path, "--resume", begun(path).path, "--quiet") == (4, "", "")


@pytest.mark.slow
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    """Exit code 2 with the file, no server is left, and what was measured stays to go on from; of an experiment that
    could not even begin nothing stays.

    Where only the page of the report has no room, the report is printed all the same.
    """
    path = experiment_file(tmp_path, {"baseline": little()}, noise="aa", load={"concurrency": [1]})
    line = [sys.executable, "-m", "loadgen", "experiment", "run", str(path), "--out", str(tmp_path / "out")]

    def limited(most_bytes: int, *more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*line, *more],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
        )

    first = limited(1_000)
    assert first.returncode == 2
    assert re.search(r"^loadgen: .*/experiment.json: cannot be written: File too large$", first.stderr, re.MULTILINE)
    assert list((tmp_path / "out").iterdir()) == []
    manifest = 7_000  # more than the manifest of a cell has, less than its summary
    full = limited(manifest)
    assert full.returncode == 2
    assert re.search(
        r"^loadgen: .*/r1-baseline/c1/summary.json: cannot be written: File too large$", full.stderr, re.MULTILINE
    )
    folder = begun(path)
    assert not list(folder.path.glob("*.kept.json"))
    assert folder.ends() == {}
    page = limited(40_000, "--resume", str(folder.path))
    assert page.returncode == 2
    assert "report.html: cannot be written" in page.stderr
    assert "0 arms against baseline" in page.stdout
    assert "2 of 2 cells are measured" in page.stdout
    assert not (folder.path / "report.html").exists()


def test_a_budget_that_does_not_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 with the reason and the way out, and no folder."""
    path = experiment_file(tmp_path, budget="1s")
    code, out, err = command(capsys, path, "--out", tmp_path / "out")
    assert (code, out) == (2, "")
    assert err.startswith("loadgen: budget: it should take ")
    assert "--yes" in err
    assert not (tmp_path / "out").exists()


def test_a_start_that_takes_minutes_is_said_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal: for how long, and what the server says."""
    display = ExperimentProgress(enabled=True, silent=False)
    for waited_s in (1.0, 59.9, 60.1, 61.0, 119.0, 121.0):
        display.starting("start 1 of 2", waited_s, "loading weights", 600)
    assert capsys.readouterr().err.splitlines() == [
        "start 1 of 2 · starting for 1m 00s · about 9m 00s left · loading weights",
        "start 1 of 2 · starting for 2m 01s · about 7m 59s left · loading weights",
    ]


async def test_a_run_that_takes_minutes_is_said_once_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    """Where there is no terminal: what is measured by then, without warm-up, and how long all will take: for 6 of 12
    requests in 30 s, 30 s more, and the 90 s of other runs. A server that is silent is named as such."""
    now_s = 0.0
    live = LiveCounts()
    live.planned, live.warmup_planned, live.warmup_ended, live.measuring_since_ns = 12, 2, 2, 1
    live.completed, live.failed, live.in_flight = 5, 1, 1
    display = ExperimentProgress(enabled=True, silent=False, minute_s=0.02, now_s=lambda: now_s)

    async def said(words: str) -> str:
        text = ""
        while words not in text:
            await asyncio.sleep(0.01)
            text += capsys.readouterr().err
        return text

    async with display.cell(live, "run 1/2", 90.0):
        now_s = 30.0
        await said("run 1/2 · 4/10 requests · 1 failed · about 2m 00s left\n")
        now_s = 72.0
        await said("run 1/2 · 4/10 requests · 1 failed · no answer for 42 s\n")
        live.completed = 11
    assert "run 1/2 · 10/10 requests, 1 failed in 1m 12s · about 1m 30s left\n" in capsys.readouterr().err


async def test_a_run_that_is_interrupted_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Not how long the experiment would still take."""
    live = LiveCounts()
    live.planned, live.completed, live.measuring_since_ns, live.stopping = 12, 7, 1, "interrupt"
    async with ExperimentProgress(enabled=True, silent=False, now_s=lambda: 0.0).cell(live, "run 1/2", 90.0):
        pass
    assert capsys.readouterr().err == "run 1/2 · 7/12 requests interrupted after 0 s\n"


async def test_a_run_on_a_terminal_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redrawn, and wiped at the end; warm-up is told apart."""
    leader, follower = os.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen:
        with os.fdopen(follower, "w") as terminal:
            monkeypatch.setattr(sys, "stderr", terminal)
            live = LiveCounts()
            live.planned, live.warmup_planned, live.warmup_ended = 12, 2, 1
            async with ExperimentProgress(enabled=True, silent=False).cell(live, "run 1/2", 90.0):
                await asyncio.sleep(0.3)
        shown = ""
        with suppress(OSError):  # how Linux says that nobody holds the other side any more
            while part := screen.read(4096):
                shown += part.decode()
    assert shown.startswith("\r\x1b[Krun 1/2 · warming up, 1/2")
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_server_starts(tmp_path: Path, number: signal.Signals) -> None:
    """Exit code 130, no server is left, and what to do next is said."""
    never = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)  # {port}"]
    path = experiment_file(tmp_path, {"baseline": {"command": never}, "other": little()})
    line = [sys.executable, "-m", "loadgen", "experiment", "run", str(path), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 30
    pid = ""
    while not pid.endswith("\n"):
        assert time.monotonic() < deadline_s
        log = next((tmp_path / "out").glob("*/cells/r1-baseline/server.log"), None)
        pid = "" if log is None else log.read_text()
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "0 of 4 cells are measured" in out
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.slow
def test_a_terminal_that_is_closed(tmp_path: Path) -> None:
    """The experiment ends in order as when it is asked to, though nobody reads what it says: exit code 130, the server
    told to end, nothing of it left."""
    hang = tmp_path / "hang"
    hang.touch()
    path = experiment_file(tmp_path, {"baseline": little(f"hang={hang}"), "other": little()})
    line = [sys.executable, "-m", "loadgen", "experiment", "run", str(path), "--out", str(tmp_path / "out")]
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        line,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    deadline_s, shown = time.monotonic() + 30, b""
    while b"run 2/4" not in shown:
        assert time.monotonic() < deadline_s
        shown += os.read(ours, 4096)
    os.close(ours)
    assert process.wait(timeout=30) == 130
    folder = begun(path)
    baseline, _ = folder.load_manifest().plan.sittings
    assert [start.stopped for start in folder.sitting(baseline).starts] == ["asked"]
    assert not list(folder.path.glob("*.kept.json"))
    assert list(folder.finished()) == ["r1-baseline/c1"]
