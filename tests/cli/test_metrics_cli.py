"""Metrics for Prometheus as a user asks for them."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.prometheus.scraped import page, watched
from tests.cli.commands import ChatServer, Command, loadgen


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A server of plain answers."""
    with ChatServer() as running:
        yield running


@pytest.fixture(scope="module")
def done(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A run that was watched by nobody."""
    arguments = ("--url", server.url, "--num-requests", 4, "--no-progress", "--prometheus-port", 0)
    return loadgen("run", *arguments, "--prometheus-linger", "10ms", out=tmp_path_factory.mktemp("runs"))


def test_where_metrics_are_is_said(done: Command) -> None:
    """The port that was free, and for how long they stay; the result is where it always is."""
    assert done.code == 0, done.stderr
    first, second = done.stderr.splitlines()
    assert re.fullmatch(r"metrics for Prometheus: http://127\.0\.0\.1:\d+/metrics", first)
    assert second == "metrics stay for 10 ms; Ctrl-C ends that"
    assert done.stdout.startswith("✓ Valid")


def test_a_port_that_is_taken_ends_a_command_before_it_begins(server: ChatServer, tmp_path: Path) -> None:
    """Exit 2 with the port, and nothing was sent or stored."""
    sent = len(server.bodies)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in ("run", "sweep"):
            failed = loadgen(command, "--url", server.url, "--prometheus-port", port, out=tmp_path / "runs")
            expected = f"loadgen: --prometheus-port: 127.0.0.1:{port} cannot be listened on: Address already in use\n"
            assert (failed.code, failed.stderr) == (2, expected)
    assert len(server.bodies) == sent
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--prometheus-port", "http"), "--prometheus-port: expected PORT or ADDRESS:PORT"),
        (("--prometheus-port", "65536"), "with a port from 0 to 65535, got '65536'"),
        (("--prometheus-port", "-1"), "with a port from 0 to 65535, got '-1'"),
        (("--prometheus-linger", "5s"), "--prometheus-linger needs --prometheus-port"),
        (("--prometheus-port", "0", "--prometheus-linger", "soon"), "--prometheus-linger: "),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Exit 2, naming the option and what was expected."""
    failed = loadgen("run", "--url", "http://127.0.0.1:9", *arguments, out=tmp_path)
    assert failed.code == 2
    assert said in failed.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_stay_and_nothing_else(server: ChatServer, tmp_path: Path, number: signal.Signals) -> None:
    """The result is out by then, and the exit code is the one that it had."""
    arguments = ("--url", server.url, "--num-requests", "2", "--out", str(tmp_path), "--no-progress")
    line = [sys.executable, "-m", "loadgen", "run", *arguments, "--prometheus-port", "0", "--prometheus-linger", "60s"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for said in process.stderr:
            if said.startswith("metrics stay"):
                break
        process.send_signal(number)
        out, last = process.communicate(timeout=20)
    assert (process.returncode, last) == (0, "metrics end\n")
    assert "saved in" in out


@pytest.mark.slow
def test_a_key_is_in_no_label(server: ChatServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where somebody gave it as the model's name, which is a label."""
    monkeypatch.setenv("KEY_OF_A_TEST", "sk-0123456789abcdef")
    arguments = ("--url", server.url, "--api-key-env", "KEY_OF_A_TEST", "--model", "sk-0123456789abcdef")
    with watched("run", *arguments, "--num-requests", "2", "--out", str(tmp_path), "--prometheus-linger", "60s") as (
        url,
        _,
    ):
        while not re.search(r'outcome="completed".*} 2', text := page(url)[1].decode()):
            time.sleep(0.05)
    assert 'model="' in text
    assert "sk-0123456789abcdef" not in text


def test_an_export_for_prometheus(done: Command, tmp_path: Path) -> None:
    """Ends as the form demands, with the labels of the live page; it holds the series and nothing else."""
    exported = loadgen("export", done.folder.path, "--format", "openmetrics", out=tmp_path)
    assert exported.code == 0, exported.stderr
    lines = exported.stdout.splitlines()
    assert lines[-1] == "# EOF"
    completed = [line for line in lines if line.startswith("loadgen_requests_total{") and '"completed"' in line]
    assert re.fullmatch(
        r'.*model="m",outcome="completed",server="unknown",workload="synthetic"\} 0\.0 \d+\.\d+', completed[0]
    )
    assert " 4.0 " in completed[-1]
    stamps = [float(line.rpartition(" ")[2]) for line in completed]
    assert stamps == sorted(set(stamps))
    refused = loadgen("export", done.folder.path, "--format", "openmetrics", "--what", "requests", out=tmp_path)
    said = "loadgen: --what requests: --format openmetrics holds series only\n"
    assert (refused.code, refused.stderr) == (2, said)
