"""The server side of HTTP/1.1, as far as the simulated servers need it.

A `Connection` reads requests and hands each to a function as an `Exchange`, the next one when the one before has been
answered. An exchange is answered whole (`respond`) or as a stream of chunks (`begin`, then `write`).
"""

import asyncio
import gc
import os
import signal
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Mapping
from http import HTTPStatus

import httptools

LAST_CHUNK = b"0\r\n\r\n"
_BODY_LIMIT_BYTES = 64 * 1024 * 1024
_READ_AHEAD = 16
_LINGER_S = 1.0


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body. An empty one would end it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Exchange:
    """One request and the way to answer it.

    `path` is its `target` without the query; `headers` have lower-case names. `received_ns` is the instant at which its
    last bytes were read. `on_gone` is called if the client leaves before the end of the answer, `on_writable` when it
    reads again after it was `paused`.
    """

    def __init__(self, connection: "Connection", received_ns: int) -> None:
        self._connection = connection
        self.method, self.target, self.path = "", "", ""
        self.headers: dict[str, str] = {}
        self.body = b""
        self.keep_alive = False
        self.received_ns = received_ns
        self.on_gone: Callable[[], object] = _nothing
        self.on_writable: Callable[[], object] = _nothing

    @property
    def open(self) -> bool:
        """Whether its answer is still to be given, or to be ended, and somebody is there to read it."""
        return self._connection.current is self

    @property
    def paused(self) -> bool:
        """Whether the client reads more slowly than it is written to: what is written now waits in memory."""
        return self._connection.paused

    def respond(self, status: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """The whole answer."""
        head = self._head(status, content_type, f"Content-Length: {len(body)}", headers or {})
        self.send(head if self.method == "HEAD" else head + body)
        self.end()

    def begin(self, content_type: str) -> None:
        """The head of a stream."""
        self.send(self._head(200, content_type, "Transfer-Encoding: chunked", {}))

    def send(self, data: bytes) -> None:
        """Bytes as they are: of a stream, a `chunk`. Nothing happens when nobody is there."""
        if self.open:
            self._connection.transport.write(data)

    def end(self) -> None:
        """The answer is complete: the next request's turn."""
        if self.open:
            self._connection.leave()
            self._connection.proceed(keep_alive=self.keep_alive)

    def cut(self) -> None:
        """Closes the connection after what was written, in the middle of an answer."""
        if self.open:
            self._connection.leave()
            self._connection.transport.close()

    def reset(self) -> None:
        """Resets the connection at once."""
        if self.open:
            transport = self._connection.transport
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._connection.leave()
            transport.abort()

    def _head(self, status: int, content_type: str, length: str, headers: Mapping[str, str]) -> bytes:
        try:
            phrase = HTTPStatus(status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [
            f"HTTP/1.1 {status} {phrase}",
            *([f"Content-Type: {content_type}"] if content_type else []),
            length,
            *(f"{name}: {value}" for name, value in headers.items()),
            *([] if self.keep_alive else ["Connection: close"]),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _nothing() -> None:
    pass


class Connection(asyncio.Protocol):
    """One client connection. Its requests, pipelined or not, are answered in order, one at a time.

    `now_ns` stamps requests; `answer` gets each. What is no HTTP at all closes the connection without a word, a broken
    request gets a 400, one of more than 64 MiB a 413; after both the connection closes.
    """

    def __init__(self, now_ns: Callable[[], int], answer: Callable[[Exchange], None]) -> None:
        self._now_ns, self._answer = now_ns, answer
        self._parser = httptools.HttpRequestParser(self)
        self._read_ns = 0
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._waiting: deque[Exchange] = deque()
        self._deaf = False
        self.current: Exchange | None = None
        self.paused = False

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has left, or was left."""
        gone = _nothing if self.current is None else self.current.on_gone
        self.leave()
        self._waiting.clear()
        del self._parser  # which holds this connection: no cycle is left for a collector that seldom runs
        gone()

    def data_received(self, data: bytes) -> None:
        """It has sent something."""
        self._read_ns = self._now_ns()
        if not self._deaf:
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade):  # an upgrade is never taken up
                self._refuse(400)
        self._advance()

    def pause_writing(self) -> None:
        """What it has not read fills the buffers."""
        self.paused = True

    def resume_writing(self) -> None:
        """It has read again."""
        self.paused = False
        if self.current is not None:
            self.current.on_writable()

    # What the parser tells

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url, self._headers, self._body = b"", {}, bytearray()

    def on_url(self, url: bytes) -> None:
        """A piece of its target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers."""
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Its body comes next."""
        if not self._deaf and self._headers.get("expect", "").lower() == "100-continue" and self.current is None:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        if not self._deaf:
            self._body += body
            if len(self._body) > _BODY_LIMIT_BYTES:
                self._refuse(413)

    def on_message_complete(self) -> None:
        """It is there as a whole."""
        if self._deaf:
            return
        exchange = Exchange(self, self._read_ns)
        exchange.method = self._parser.get_method().decode("latin-1")
        exchange.target = self._url.decode("latin-1")
        exchange.path = exchange.target.partition("?")[0]
        exchange.headers, exchange.body = self._headers, bytes(self._body)
        exchange.keep_alive = self._parser.should_keep_alive()
        self._waiting.append(exchange)

    # The order of answers

    def leave(self) -> None:
        """The current exchange is over, one way or another."""
        if self.current is not None:
            self.current.on_gone = self.current.on_writable = _nothing  # so that no cycle keeps what they hold
            self.current = None

    def proceed(self, *, keep_alive: bool) -> None:
        """To the next request, or to the end. Nothing more comes then, but the connection closes a little later: a
        client that still sends would get a reset instead of its answer.
        """
        loop = asyncio.get_running_loop()
        if keep_alive:
            loop.call_soon(self._advance)
        else:
            self._deaf = True
            self.transport.write_eof()
            loop.call_later(_LINGER_S, self.transport.close)

    def _advance(self) -> None:
        while self.current is None and self._waiting and not self.transport.is_closing():
            self.current = self._waiting.popleft()
            self._answer(self.current)
        if len(self._waiting) > _READ_AHEAD:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _refuse(self, status: int) -> None:
        """Nothing more is read. What was read before is answered first."""
        if self._deaf:
            return
        self._deaf = True
        last = self._waiting[-1] if self._waiting else self.current
        if last is not None:
            last.keep_alive = False
        elif self._url:
            self.current = Exchange(self, self._read_ns)
            self.current.respond(status, "text/plain; charset=utf-8", HTTPStatus(status).phrase.encode())
        else:
            self.transport.close()


async def listen(
    connection: Callable[[], Connection],
    host: str,
    port: int,
    *,
    listening: Callable[[str, int], None],
    until_stdin_closes: bool,
) -> None:
    """Serves until SIGTERM, SIGINT or, if asked, the end of standard input. `listening` gets URL and port."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_stdin_closes:
        try:
            loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1024) else stop.set())
        except PermissionError:  # a file or /dev/null, which cannot be waited for: its end is there already
            stop.set()
    server = await loop.create_server(connection, host, port, backlog=4096)
    bound = server.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)  # a full collection among the writes would be lateness of our own
    listening(f"http://{shown}:{bound}", bound)
    await stop.wait()
    server.close()
