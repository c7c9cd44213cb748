"""The page on a port, served by threads of its own.

Threads, because the page has to outlive the event loop that measures, and because no scrape, however slow its reader,
may then take a turn of that loop.
"""

import socket
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from loadgen.adapters.prometheus.families import Family
from loadgen.adapters.prometheus.page import chosen
from loadgen.core.errors import ConfigError

_PATHS = ("/metrics", "/")
_MOST_CONNECTIONS = 16
_IDLE_S = 30.0


class Source(Protocol):
    """What the page is made of."""

    def families(self) -> Sequence[Family]:
        """Everything as it is now."""
        ...


class MetricsServer:
    """A port with a page. Raises ConfigError, naming both, when the port cannot be had; `close` gives it back."""

    def __init__(self, source: Source, *, host: str, port: int) -> None:
        try:
            self._server = _Server(source, host, port)
        except OSError as fault:
            reason = fault.strerror or str(fault)
            raise ConfigError(f"--prometheus-port: {host}:{port} cannot be listened on: {reason}") from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where the page is."""
        host, port = self._server.server_address[:2]
        name = str(host)
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/metrics"

    def close(self) -> None:
        """Ends the page and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, source: Source, host: str, port: int) -> None:
        self.source = source
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without a look-up of the host's name, which may take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is a place for one more reader."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serves one connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "loadgen"
    sys_version = ""
    timeout = _IDLE_S
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """The page, in the form that was asked for."""
        if self.path.partition("?")[0] not in _PATHS:
            self._answer(404, "text/plain; charset=utf-8", b"the page is at /metrics\n")
            return
        content_type, render = chosen(self.headers.get("Accept", ""))
        self._answer(200, content_type, render(self.server.source.families()))

    def do_HEAD(self) -> None:
        """The same without its body."""
        self.do_GET()

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the name is the library's)
        """Nobody reads a log of scrapes."""
