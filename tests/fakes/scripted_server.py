"""A raw-socket server that plays a script on every connection: any bytes, any split, any ill manners."""

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

JOIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request as received: the head's lines and the body."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Peer:
    """The server's end of one connection. `number` counts connections from 1."""

    sock: socket.socket
    number: int
    buffered: bytes = b""

    def read_head(self) -> Request | None:
        """The next request's head, leaving its body unread; None when the client has closed."""
        while b"\r\n\r\n" not in self.buffered:
            data = self.sock.recv(65536)
            if not data:
                return None
            self.buffered += data
        head, _, self.buffered = self.buffered.partition(b"\r\n\r\n")
        line, *rest = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (text.partition(":") for text in rest)}
        return Request(line, headers, b"")

    def read_request(self, *, piece_bytes: int = 1 << 20, pause_s: float = 0.0) -> Request | None:
        """The next request with its body, read in pieces of at most that size; None when the client has closed."""
        head = self.read_head()
        if head is None:
            return None
        length = int(head.headers.get("content-length", "0"))
        parts = [self.buffered[:length]]
        self.buffered = self.buffered[length:]
        missing = length - len(parts[0])
        while missing:
            data = self.sock.recv(min(piece_bytes, missing))
            if not data:
                return None
            parts.append(data)
            missing -= len(data)
            time.sleep(pause_s)
        return Request(head.line, head.headers, b"".join(parts))

    def send(self, *pieces: bytes, pause_s: float = 0.0) -> None:
        """Sends each piece by a write of its own."""
        for piece in pieces:
            self.sock.sendall(piece)
            time.sleep(pause_s)

    def reset(self) -> None:
        """Closes with a reset (RST) instead of an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait_for_close(self) -> None:
        """Reads until the client closes."""
        while self.sock.recv(65536):
            pass


Script = Callable[[Peer], None]


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def plain(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    """A whole response with a Content-Length; `headers` are further lines, each ended by CRLF."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answering(*pieces: bytes, pause_s: float = 0.0) -> Script:
    """A script that answers every request of a connection with the same pieces."""

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            peer.send(*pieces, pause_s=pause_s)

    return script


def answering_once(*pieces: bytes, pause_s: float = 0.0) -> Script:
    """A script that answers one request and closes."""

    def script(peer: Peer) -> None:
        if peer.read_request() is not None:
            peer.send(*pieces, pause_s=pause_s)

    return script


@dataclass
class ScriptedServer:
    """Listens while it is entered; each connection runs `script` in a thread of its own and is then closed.

    An assertion or any other error in a script, except that the client has gone, is raised on leaving.
    """

    script: Script
    family: int = socket.AF_INET
    tls: ssl.SSLContext | None = None
    unix_path: Path | None = None
    connections: int = 0
    _errors: list[BaseException] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)
    _sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> "ScriptedServer":
        if self.unix_path is not None:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(self.unix_path))
        else:
            host = "::1" if self.family == socket.AF_INET6 else "127.0.0.1"
            self._listener = socket.socket(self.family, socket.SOCK_STREAM)
            self._listener.bind((host, 0))
        self._listener.listen(512)
        self._acceptor = threading.Thread(target=self._accept)
        self._acceptor.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close_door()
        self._acceptor.join(JOIN_S)
        self._listener.close()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(JOIN_S)
        stuck = [thread for thread in self._threads if thread.is_alive()]
        assert not stuck, f"{len(stuck)} scripts did not end"
        if self._errors:
            raise self._errors[0]

    def close_door(self) -> None:
        """Takes no further connection; those that there are go on."""
        with contextlib.suppress(OSError):  # it is closed
            self._listener.shutdown(socket.SHUT_RDWR)

    @property
    def port(self) -> int:
        """The port that the system chose."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """The base URL of this server."""
        if self.unix_path is not None:
            return f"unix://{self.unix_path}"
        scheme = "http" if self.tls is None else "https"
        host = "[::1]" if self.family == socket.AF_INET6 else "127.0.0.1"
        return f"{scheme}://{host}:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if self.unix_path is None:  # else the client's delayed acknowledgements hold back small writes by 40 ms
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._sockets.append(sock)
            thread = threading.Thread(target=self._play, args=(sock, self.connections))
            self._threads.append(thread)
            thread.start()

    def _play(self, sock: socket.socket, number: int) -> None:
        try:
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            self.script(Peer(sock, number))
        except OSError:
            pass  # the client has gone, or the handshake failed
        except BaseException as error:
            self._errors.append(error)
        finally:
            sock.close()
