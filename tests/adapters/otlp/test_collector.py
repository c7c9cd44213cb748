"""OpenTelemetry's own exporter against a real receiver: what it sends, and what it says when that fails."""

import socket
from collections.abc import Iterator

import pytest

from loadgen.adapters.otlp.collector import Collector
from loadgen.adapters.otlp.names import OF_1_41
from loadgen.adapters.otlp.points import Form
from tests.adapters.otlp.receiver import Receiver, receiver
from tests.adapters.prometheus.pages import monitor_of
from tests.core.analysis.factory import answered

FORM = Form(conventions=OF_1_41, operation="chat", start_ns=5)


@pytest.fixture
def there() -> Iterator[Receiver]:
    """A receiver."""
    with receiver() as running:
        yield running


def push(url: str) -> str | None:
    """Sends a page of one request once."""
    collector = Collector(f"{url}/v1/metrics", FORM)
    try:
        return collector.send(monitor_of([answered(0)]).families())
    finally:
        collector.close()


def test_a_push_arrives(there: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """With headers, compression and resource as OpenTelemetry's own variables say."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key-of-a-test")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab,service.name=nightly")
    assert push(there.url) is None
    (headers,) = there.headers
    assert (there.paths, headers["authorization"]) == (["/v1/metrics"], "Bearer key-of-a-test")
    assert (headers["content-type"], headers["content-encoding"]) == ("application/x-protobuf", "gzip")
    assert "loadgen.requests" in there.metrics()
    resource = there.resource()
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("nightly", "lab")
    assert resource["service.instance.id"].startswith(f"{socket.gethostname()}:")


def test_who_pushes_is_loadgen_unless_said_otherwise(there: Receiver) -> None:
    """By the name of the service, which Prometheus takes for the job."""
    assert push(there.url) is None
    assert there.resource()["service.name"] == "loadgen"


def test_a_refusal_is_said_by_its_status(there: Receiver) -> None:
    """In few words."""
    there.status = 401
    assert push(there.url) == "HTTP 401 Unauthorized"


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is said in the system's words, not in those of four layers above it."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert push(f"http://127.0.0.1:{port}") == "Connection refused"


def test_a_receiver_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is given up after the time limit that OpenTelemetry's variable sets."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert push(f"http://127.0.0.1:{server.getsockname()[1]}") == "timed out"
