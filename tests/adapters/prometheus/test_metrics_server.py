"""The page on its port: who gets what, and that it takes and gives back what it should."""

import http.client
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from loadgen.adapters.prometheus.server import MetricsServer
from loadgen.core.errors import ConfigError
from tests.adapters.prometheus.pages import monitor_of
from tests.core.analysis.factory import answered


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    """A page of one request on a free port."""
    running = MetricsServer(monitor_of([answered(0)]), host="127.0.0.1", port=0)
    yield running
    running.close()


def ask(server: MetricsServer, path: str = "/metrics", method: str = "GET") -> tuple[int, bytes]:
    """Status and body."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_page(server: MetricsServer) -> None:
    """At its path and at the root; elsewhere there is nothing, and other methods are not known."""
    assert server.url.startswith("http://127.0.0.1:")
    assert ask(server)[0] == ask(server, "/")[0] == ask(server, "/metrics?x=1")[0] == 200
    assert b"loadgen_requests_total{" in ask(server)[1]
    assert ask(server, "/metrics", "HEAD") == (200, b"")
    assert ask(server, "/secret")[0] == 404
    assert ask(server, "/metrics", "POST")[0] == 501


def test_one_connection_serves_many_scrapes(server: MetricsServer) -> None:
    """As Prometheus keeps it."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=5)
    for _ in range(3):
        connection.request("GET", "/metrics")
        first = connection.sock
        assert connection.getresponse().read()
        assert connection.sock is first
    connection.close()


@pytest.mark.slow
def test_readers_are_bounded(server: MetricsServer) -> None:
    """The seventeenth is turned away, and has a place again once another one has gone."""
    address = urlsplit(server.url)
    assert address.port is not None
    readers = [socket.create_connection(("127.0.0.1", address.port), timeout=5) for _ in range(16)]
    with socket.create_connection(("127.0.0.1", address.port), timeout=5) as turned_away:
        assert turned_away.recv(100) == b""
    for reader in readers:
        reader.close()
    assert _in_the_end(server)


def _in_the_end(server: MetricsServer) -> bool:
    for _ in range(100):
        try:
            return ask(server)[0] == 200
        except (OSError, http.client.HTTPException):
            threading.Event().wait(0.02)
    return False


def test_a_port_that_is_taken() -> None:
    """Is named, with the reason."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"--prometheus-port: 127\.0\.0\.1:{port} cannot be .*: Address already"):
            MetricsServer(monitor_of([]), host="127.0.0.1", port=port)


def test_an_address_that_is_not_of_this_machine() -> None:
    """Is named, with the reason."""
    with pytest.raises(ConfigError, match=r"--prometheus-port: 192\.0\.2\.1:0 cannot be listened on"):
        MetricsServer(monitor_of([]), host="192.0.2.1", port=0)


def test_the_end_gives_everything_back() -> None:
    """Port and threads."""
    before = threading.active_count()
    server = MetricsServer(monitor_of([]), host="127.0.0.1", port=0)
    port = urlsplit(server.url).port
    server.close()
    assert threading.active_count() == before
    with socket.create_server(("127.0.0.1", port or 0), reuse_port=False):
        pass
