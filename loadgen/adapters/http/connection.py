"""One connection and the exchange on it: send, read and stamp, end. All of it runs in callbacks of the event loop.

The order inside a read is the point of the project: the stamp first, then HTTP framing, then nothing. What the body
says is decoded by others, when there is time.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

from loadgen.adapters.http.failures import WireError, reason, tls_reason
from loadgen.adapters.http.readiness import Readiness
from loadgen.adapters.http.response import Response
from loadgen.adapters.http.stamps import ANCILLARY_BYTES, STALL_NS, realtime_offset_ns, stamp_unix_ns
from loadgen.adapters.http.tls import TlsSession
from loadgen.core.errors import InternalError
from loadgen.core.record import FailureKind
from loadgen.core.units import seconds
from loadgen.engine.ports import Clock, Ending, Inbox

_RECEIVE_BYTES = 256 * 1024  # one buffer for all connections: a large body takes few reads, a small one no memory
_CATCH_UP_READS = 64
_EDGE_CHUNKS = 4  # servers begin and end a stream with up to so many at once: role, token; finish, usage, [DONE]


class Reception:
    """What the connections of one transport share: the clock, one receive buffer, and the axis of kernel stamps.

    `lag_ns` is the largest delay of a read behind its stamp in this turn of the loop; `unstamped_reads` counts reads
    that should have come with a stamp and did not.
    """

    def __init__(self, clock: Clock) -> None:
        self.now_ns = clock.now_ns
        self.buffer = memoryview(bytearray(_RECEIVE_BYTES))
        self.buffers = [self.buffer]
        self.unstamped_reads = 0
        self.begin_turn()

    def begin_turn(self) -> None:
        """Ties the wall clock to the axis anew."""
        self.offset_ns = realtime_offset_ns(self.now_ns)
        self.lag_ns = 0


class _Exchange:
    """A request under way: where its response goes, and who waits for it."""

    __slots__ = ("done", "inbox", "response")

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.response = Response(inbox)
        self.done: asyncio.Future[Ending | None] = asyncio.get_running_loop().create_future()


class Connection:
    """An open connection, idle or with one exchange.

    `stamped` says whether the system promised kernel stamps on this socket. `on_idle` is called when the connection
    may take its next exchange, `on_closed` when it is gone.
    """

    __slots__ = (
        "_active_ns",
        "_exchange",
        "_fresh",
        "_on_closed",
        "_on_idle",
        "_reception",
        "_socket",
        "_stamp_ns",
        "_stamped",
        "_tls",
        "_unsent",
        "_watch",
    )

    def __init__(
        self,
        sock: socket.socket,
        tls: TlsSession | None,
        *,
        stamped: bool,
        reception: Reception,
        watch: Readiness,
        on_idle: Callable[["Connection"], None],
        on_closed: Callable[["Connection"], None],
    ) -> None:
        self._socket = sock
        self._tls = tls
        self._stamped = stamped
        self._reception = reception
        self._watch = watch
        self._on_idle = on_idle
        self._on_closed = on_closed
        self._fresh = True
        self._exchange: _Exchange | None = None
        self._unsent: memoryview | None = None
        self._active_ns = 0
        self._stamp_ns = 0
        watch.watch(sock.fileno(), self._on_ready)

    def usable(self) -> bool:
        """Whether the peer has kept this idle connection open and silent; looked up now, not remembered."""
        self._read()
        return self._socket.fileno() >= 0

    def start(self, request: bytes, inbox: Inbox) -> "asyncio.Future[Ending | None]":
        """Sends a request; the future is done when the exchange is, and cancelled when the connection is closed.

        It gives None when a connection that had served before was closed or reset before any byte of the response:
        the server let go of it just as we reached for it, and knows nothing of this request.
        """
        exchange = self._exchange = _Exchange(inbox)
        if self._tls is not None:
            self._tls.encrypt(request)
            request = self._tls.outgoing()
        self._unsent = memoryview(request)
        now = self._active_ns = self._stamp_ns = self._reception.now_ns()
        if inbox.sent_ns is None:
            inbox.sent_ns = now
        if not self._send() and self._socket.fileno() >= 0:
            self._watch.watch_writing(self._socket.fileno(), True)
        return exchange.done

    def check(self, idle_ns: int | None, total_ns: int | None) -> None:
        """Ends the exchange if a limit has passed, counting first what has already arrived: we may be the late ones."""
        if self._overdue(idle_ns, total_ns) is None:
            return
        for _ in range(_CATCH_UP_READS):
            if self._exchange is None or not self._read():
                break
        overdue = self._overdue(idle_ns, total_ns)
        if overdue is not None:
            self._fail(*overdue)

    def abandon(self, done: "asyncio.Future[Ending | None]") -> None:
        """Closes the connection if the exchange of `done` is still on it."""
        if self._exchange is not None and self._exchange.done is done:
            self.close()

    def close(self) -> None:
        """Closes the socket; an exchange still on it is cancelled. A second call does nothing."""
        if self._socket.fileno() < 0:
            return
        self._watch.forget(self._socket.fileno())
        self._socket.close()
        exchange, self._exchange, self._unsent = self._exchange, None, None
        if exchange is not None:
            exchange.done.cancel()
        self._on_closed(self)

    def _on_ready(self, readable: bool, writable: bool) -> None:
        if readable:
            self._read()
        if writable and self._send():
            self._watch.watch_writing(self._socket.fileno(), False)

    def _send(self) -> bool:
        """Sends what the socket takes; whether this was the rest of a request."""
        if self._unsent is None:
            return False
        try:
            sent = self._socket.send(self._unsent)
        except BlockingIOError:
            return False
        except OSError as error:
            while self._exchange is not None and self._read():
                pass  # the server may have answered, with a refusal, before it closed
            self._lost(error)
            return False
        self._active_ns = self._reception.now_ns()
        self._unsent = self._unsent[sent:] if sent < len(self._unsent) else None
        return self._unsent is None

    def _read(self) -> bool:
        """One read, stamped and handed on; whether there was anything to read."""
        reception = self._reception
        try:
            if self._stamped:
                size, ancillary, _, _ = self._socket.recvmsg_into(reception.buffers, ANCILLARY_BYTES)
            else:
                size, ancillary = self._socket.recv_into(reception.buffer), []
        except BlockingIOError:
            return False
        except OSError as error:
            self._lost(error)
            return False
        now = reception.now_ns()
        if size == 0:
            self._ended()
            return False
        lag: int | None = None
        if ancillary:
            stamp = stamp_unix_ns(ancillary) + reception.offset_ns
            if stamp > now:
                stamp = now
            elif stamp < self._stamp_ns:
                stamp = self._stamp_ns
            lag = late = now - stamp
            if late > reception.lag_ns:
                reception.lag_ns = late
        else:
            stamp = now
            if self._stamped:
                reception.unstamped_reads += 1
        self._stamp_ns = stamp
        data: bytes | memoryview = reception.buffer[:size]
        if self._tls is not None:
            try:
                data = self._tls.decrypt(data)
            except ssl.SSLError as error:
                self._fail(FailureKind.TLS, f"TLS broke: {tls_reason(error)}")
                return False
        if data:
            self._receive(data, stamp, lag)
        if self._tls is not None and self._tls.ended:
            self._ended()
        return True

    def _receive(self, data: bytes | memoryview, stamp: int, lag: int | None) -> None:
        exchange = self._exchange
        if exchange is None:
            self.close()  # an answer to nothing
            return
        inbox, response = exchange.inbox, exchange.response
        if not response.begun:
            inbox.first_byte_ns = stamp
        inbox.last_activity_ns = stamp
        inbox.bytes_received += len(data)
        if lag is not None and (inbox.lag_max_ns is None or lag > inbox.lag_max_ns):
            inbox.lag_max_ns = lag
        before, opening = len(inbox.pieces), not response.body_begun
        try:
            response.feed(data, stamp)
        except WireError as error:
            self._fail(error.kind, error.message)
            return
        except InternalError as error:
            self._exchange = None
            exchange.done.set_exception(error)
            self.close()
            return
        if self._reception.lag_ns > STALL_NS and response.body_begun:
            # Some read of this turn came late, so the loop was away that long. Segments that arrived meanwhile on one
            # connection are merged under the stamp of the last: of a chunked body, more chunks than are sent at once.
            together = _EDGE_CHUNKS if opening or response.complete else response.chunked
            if len(inbox.pieces) - before > together:
                inbox.stalled_stamps.append(stamp)
        if response.complete:
            self._complete(stamp)

    def _ended(self) -> None:
        """The peer has closed its side."""
        exchange = self._exchange
        if exchange is None or not exchange.response.begun:
            self._lost(None)
            return
        try:
            exchange.response.end_of_stream(authenticated=self._tls is None or self._tls.ended)
        except WireError as error:
            self._fail(error.kind, error.message)
        else:
            self._complete(self._reception.now_ns())

    def _lost(self, error: OSError | None) -> None:
        """The connection is gone, by an error or by the peer's close: what that means for the exchange on it."""
        exchange = self._exchange
        if exchange is None:
            self.close()
            return
        words = "closed by the server" if error is None else reason(error)
        if exchange.response.begun:
            received = exchange.inbox.bytes_received
            self._fail(FailureKind.READ, f"{words}, after {received} bytes of the response")
        elif not self._fresh:
            self._end(None)
            self.close()
        elif self._unsent is not None:
            self._fail(FailureKind.WRITE, f"{words}, with {len(self._unsent)} bytes of the request still to be sent")
        else:
            self._fail(FailureKind.READ, f"{words}, before any byte of a response")

    def _overdue(self, idle_ns: int | None, total_ns: int | None) -> tuple[FailureKind, str] | None:
        if self._exchange is None:
            return None
        inbox, now = self._exchange.inbox, self._reception.now_ns()
        if total_ns is not None and inbox.sent_ns is not None and now - inbox.sent_ns >= total_ns:
            return FailureKind.TOTAL_TIMEOUT, f"not complete {seconds(total_ns):g} s after it was sent"
        active = max(self._active_ns, inbox.last_activity_ns or 0)
        if idle_ns is not None and now - active >= idle_ns:
            if inbox.first_byte_ns is None:
                return FailureKind.READ_TIMEOUT, f"nothing of a response within {seconds(idle_ns):g} s"
            return FailureKind.IDLE_TIMEOUT, f"silence of {seconds(idle_ns):g} s inside the response"
        return None

    def _complete(self, stamp: int) -> None:
        if self._exchange is None:
            return
        reusable = self._exchange.response.keep_alive and self._unsent is None
        self._end(Ending(closed_ns=stamp))
        self._fresh = False
        if reusable:
            self._on_idle(self)
        else:
            self.close()

    def _fail(self, kind: FailureKind, message: str) -> None:
        self._end(Ending(closed_ns=self._reception.now_ns(), kind=kind, message=message))
        self.close()

    def _end(self, ending: Ending | None) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.response.release()
            if not exchange.done.done():
                exchange.done.set_result(ending)
