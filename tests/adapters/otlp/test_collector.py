"""OpenTelemetry's own exporter against a real receiver: what it sends, and what it says when that fails."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

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


@contextmanager
def endless(answer: str) -> Iterator[str]:
    """The URL of a server that gives this beginning of an answer, and something more until its reader has gone."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            with suppress(OSError):
                self.wfile.write(answer.encode())
                while True:
                    self.wfile.write(bytes(2**16))

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


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


def test_a_redirection_is_no_success(there: Receiver) -> None:
    """It is not followed, as keys in headers would go along; so nothing has arrived where it leads."""
    there.status = 302
    assert push(there.url) == "HTTP 302 Found"
    assert len(there.pushes) == 1


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>", "the answer is a page of HTML, not a collector's"),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n\r\n", None),
        ("HTTP/1.1 500 \x1b[31mBoom\r\n\r\n", "HTTP 500 ?[31mBoom"),
        ("nothing of HTTP\r\n\r\n", "nothing of HTTP"),
    ],
)
def test_an_answer_that_never_ends(answer: str, fault: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is read no further than a collector's would be, and is judged by its beginning."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    with endless(answer) as url:
        assert push(url) == fault


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
