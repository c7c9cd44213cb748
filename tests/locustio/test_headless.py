"""`loadgen locust` as a script uses it: exit codes, signals, servers by profile, and a process that dies."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.sim.script import Script
from loadgen.sim.truth import TruthServer, spawn_truth_server
from tests.locustio.swarms import LADDER_S, command, descendants_of, swarm

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def truth() -> Iterator[TruthServer]:
    """Answers of known timing."""
    with spawn_truth_server(Script(ttft_ms=20, gap_ms=5)) as server:
        yield server


def finished(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=LADDER_S, check=False)


def test_a_ladder_ends_as_a_sweep_does(truth: TruthServer, tmp_path: Path) -> None:
    """The table on stdout, where it is saved on stderr; a gate that fails is said, and is the exit code."""
    load = ("--url", truth.url, "--concurrency", "1,2", "--num-requests", 12, "--settle", "0s", "--out", tmp_path)
    done = finished("--headless", *load, "--slo", "ttft=1ms", "--slo-attainment", 0.5)
    assert done.returncode == 1, done.stderr
    assert "Levels of concurrency" in done.stdout
    assert "gate failed" in done.stderr
    assert f"saved in {next(tmp_path.iterdir())}" in done.stderr


def test_what_is_wrong_ends_it_before_anything_is_sent(truth: TruthServer, tmp_path: Path) -> None:
    """Exit 2 with the option, whether this process or the one that measures finds out; 4 where no server is."""
    sent = len(truth.log().entries)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = finished("--url", truth.url, "--port", port)
        assert (done.returncode, f"--port: 127.0.0.1:{port} cannot be listened on" in done.stderr) == (2, True)
    done = finished("--headless", "--url", truth.url, "--prompts", tmp_path / "none.jsonl", "--out", tmp_path)
    assert (done.returncode, "none.jsonl" in done.stderr) == (2, True), done.stderr
    done = finished("--headless", "--url", "http://127.0.0.1:9", "--out", tmp_path)
    assert (done.returncode, "cannot be reached" in done.stderr) == (4, True), done.stderr
    assert len(truth.log().entries) == sent
    assert not list(tmp_path.iterdir())


def test_an_interrupt_saves_what_was_measured(truth: TruthServer, tmp_path: Path) -> None:
    """Exit 130, with the records of every request that had been answered."""
    load = ("--url", truth.url, "--concurrency", 2, "--duration", "60s", "--out", tmp_path)
    before = len(truth.log().entries)
    with subprocess.Popen(command("--headless", *load), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while len(truth.log().entries) < before + 20:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LADDER_S)
    assert process.returncode == 130
    (sweep,) = tmp_path.iterdir()
    folder = RunFolder.open(next((sweep / "levels").iterdir()))
    assert folder.load_summary().interrupted
    assert len(list(folder.records())) == len(truth.log().entries) - before


def test_a_server_is_started_from_its_profile(tmp_path: Path) -> None:
    """And ended behind the ladder: nothing listens there any more."""
    load = ("--server-profile", "sim-baseline", "--server-launch", "sim", "--num-requests", 8, "--concurrency", 2)
    done = finished("--headless", *load, "--output-tokens", 8, "--json", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    port = re.search(r'"url": "http://127\.0\.0\.1:(\d+)"', done.stdout)
    assert port is not None
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", int(port[1]))):
        pass


def test_a_process_that_measures_and_does_not_hear_is_ended(truth: TruthServer, tmp_path: Path) -> None:
    """By a third stop; nothing else would free the page."""
    with swarm("--url", truth.url, "--out", tmp_path, "--quiet") as locust:
        assert locust.post("swarm", concurrency="1", duration="60s")["success"]
        locust.until(lambda state: state["progress"].get("ended", 0) > 0)
        (conductor,) = descendants_of(locust.process.pid, "loadgen.locustio.conductor")
        os.kill(conductor, signal.SIGSTOP)
        for _ in range(2):
            locust.post("stop")
        assert locust.state["phase"] == "stopping"
        locust.post("stop")
        state = locust.until(lambda state: state["phase"] == "ended")
        assert "ended with status -9" in state["ended"]["error"]


def test_a_process_that_measures_and_dies_is_said_and_replaced(truth: TruthServer, tmp_path: Path) -> None:
    """What it had stored is there; the page lives, and the next ladder runs."""
    with swarm("--url", truth.url, "--out", tmp_path, "--quiet") as locust:
        assert locust.post("swarm", concurrency="1", duration="60s")["success"]
        locust.until(lambda state: state["progress"].get("ended", 0) > 5)
        said = locust.post("swarm", concurrency="1")
        assert (said["success"], "a ladder is under way" in said["message"]) == (False, True)
        (conductor,) = descendants_of(locust.process.pid, "loadgen.locustio.conductor")
        os.kill(conductor, signal.SIGKILL)
        state = locust.until(lambda state: state["phase"] == "ended")
        assert (state["ended"]["code"], "ended with status -9" in state["ended"]["error"]) == (3, True)
        (sweep,) = tmp_path.iterdir()
        assert state["ended"]["path"] == str(sweep)
        assert len(list(RunFolder.open(next((sweep / "levels").iterdir())).records())) > 5
        assert locust.post("swarm", concurrency="1", num_requests="5")["success"]
        state = locust.until(lambda state: state["phase"] == "ended")
        assert (state["ended"]["code"], state["rows"][0]["requests"]["completed"]) == (0, 5)
        metrics = locust.get("metrics").decode()
        assert re.search(r'^loadgen_requests_total\{[^}]*outcome="completed"[^}]*\} 5\.0$', metrics, re.MULTILINE)
    assert locust.process.returncode == 0
