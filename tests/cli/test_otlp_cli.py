"""Metrics for a collector of OpenTelemetry as a user asks for them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adapters.otlp.receiver import Receiver, attributes, receiver
from tests.cli.commands import ChatServer, loadgen

KEY = "sk-0123456789abcdef"


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A server of plain answers."""
    with ChatServer() as running:
        yield running


@pytest.fixture
def collector() -> Iterator[Receiver]:
    """A collector."""
    with receiver() as running:
        yield running


def test_a_run_pushes_its_last_state(server: ChatServer, collector: Receiver, tmp_path: Path) -> None:
    """All requests, results of levels and the verdict; the key of the collector is in no file and on no screen."""
    arguments = ("--url", server.url, "--num-requests", 4, "--no-progress", "--otlp-endpoint", collector.url)
    done = loadgen("run", *arguments, out=tmp_path, env={"OTEL_EXPORTER_OTLP_HEADERS": f"x-key={KEY}"})
    assert (done.code, done.stderr) == (0, "")
    assert {headers["x-key"] for headers in collector.headers} == {KEY}
    found = collector.metrics()
    completed = [point.as_int for point in found["loadgen.requests"].sum.data_points if "completed" in str(point)]
    assert completed == [4]
    (duration,) = found["gen_ai.client.operation.duration"].histogram.data_points
    assert (duration.count, attributes(duration)["gen_ai.operation.name"]) == (4, "chat")
    assert found["loadgen.level_request_rate_rps"].gauge.data_points[0].as_double > 0
    assert found["loadgen.measurement_valid"].gauge.data_points[0].as_int == 1
    assert KEY not in done.stdout
    assert not [path for path in done.folder.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_sweep_pushes_completions_by_their_name(server: ChatServer, collector: Receiver, tmp_path: Path) -> None:
    """The base of the URL may have a path, as Prometheus' own receiver has it."""
    arguments = ("--url", server.url, "--concurrency", "1,2", "--num-requests", 2, "--no-progress", "--allow-invalid")
    push = ("--otlp-endpoint", f"{collector.url}/api/v1/otlp/", "--endpoint", "completions")
    done = loadgen("sweep", *arguments, *push, out=tmp_path)
    assert done.code in (0, 5), done.stderr
    assert set(collector.paths) == {"/api/v1/otlp/v1/metrics"}
    levels = collector.metrics()["loadgen.level_measurement_valid"].gauge.data_points
    assert {attributes(point)["level"] for point in levels} == {"1", "2"}


def test_a_collector_that_is_not_there_harms_nothing(server: ChatServer, tmp_path: Path) -> None:
    """Result and exit code are those of any run; the fault is said once, and counted at the end.

    Nothing else is said: no log of the exporter's, which shows headers that are none, so a key that is given wrongly.
    """
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    settings = {"OTEL_EXPORTER_OTLP_TIMEOUT": "0.1", "OTEL_EXPORTER_OTLP_HEADERS": KEY}
    arguments = ("--url", server.url, "--num-requests", 4, "--no-progress", "--otlp-endpoint", url)
    done = loadgen("run", *arguments, out=tmp_path, env=settings)
    assert done.code == 0
    first, last = done.stderr.splitlines()
    assert first == f"metrics do not reach {url}/v1/metrics: Connection refused; the measurement goes on without"
    assert last == f"metrics: 2 of 2 pushes to {url}/v1/metrics failed"
    assert done.stdout.startswith("✓ Valid")


@pytest.mark.parametrize(
    "url",
    [
        "collector:4318",
        "grpc://collector:4317",
        "http://",
        "http://user:sk-0123456789abcdef@collector:4318",
        "http://collector:4318/?key=sk-0123456789abcdef",
        "http://collector:99999",
        "http://collector: 4318",
    ],
)
def test_what_is_no_collector_is_refused(url: str, tmp_path: Path) -> None:
    """Exit 2, naming the option and what was expected; what may be a key is not said again."""
    failed = loadgen("run", "--url", "http://127.0.0.1:9", "--otlp-endpoint", url, out=tmp_path)
    assert failed.code == 2
    assert failed.stderr.startswith("loadgen: --otlp-endpoint: expected http://HOST[:PORT][/PATH]")
    assert KEY not in failed.stderr


def test_an_interval_that_is_none(server: ChatServer, collector: Receiver, tmp_path: Path) -> None:
    """Exit 2 with the variable and what was expected, before anything is sent."""
    sent = len(server.bodies)
    arguments = ("--url", server.url, "--num-requests", 1, "--otlp-endpoint", collector.url)
    failed = loadgen("run", *arguments, out=tmp_path, env={"OTEL_METRIC_EXPORT_INTERVAL": "10s"})
    said = "loadgen: OTEL_METRIC_EXPORT_INTERVAL: expected milliseconds, a whole number from 1, got '10s'\n"
    assert (failed.code, failed.stderr) == (2, said)
    assert (len(server.bodies), collector.pushes) == (sent, [])


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path) -> None:
    """In a Python without OpenTelemetry the user learns which extra brings it."""
    code = "import sys; sys.modules['opentelemetry'] = None; from loadgen.cli import main; main()"
    line = ("run", "--url", "http://127.0.0.1:9", "--otlp-endpoint", "http://127.0.0.1:9", "--out", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "pip install '.[otlp]'" in done.stderr
