"""A real HTTP server that answers from a table, and a client for it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

Reply = tuple[int, str, bytes] | Callable[[dict[str, Any]], tuple[int, str, bytes]]


class TableServer(ThreadingHTTPServer):
    """`table` maps a path to a reply or to a function of the request's JSON body; `seen` keeps what was asked."""

    daemon_threads = True

    def __init__(self, table: dict[str, Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.table = table
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def do_OPTIONS(self) -> None:
        """As of a route that takes GET alone."""
        server = self.server
        assert isinstance(server, TableServer)
        server.seen.append((self.command, self.path, dict(self.headers), None))
        self.send_response(405 if self.path in server.table else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, body: Any) -> None:
        server = self.server
        assert isinstance(server, TableServer)
        server.seen.append((self.command, self.path, dict(self.headers), body))
        reply = server.table.get(self.path, (404, "text/plain", b"no"))
        status, content_type, data = reply(body) if callable(reply) else reply
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", data.decode())
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Nothing: the test reads `seen`."""


@contextmanager
def table_server(table: dict[str, Reply]) -> Iterator[TableServer]:
    """Serves the table until the block ends."""
    with TableServer(table) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def serving():
    """Starts a table server."""
    return table_server


@pytest.fixture
def client_for():
    """A control-plane client for a root URL."""

    def make(url: str, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=url, trust_env=False, verify=False, **options)

    return make
