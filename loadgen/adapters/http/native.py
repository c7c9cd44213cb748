"""The measuring transport: HTTP/1.1 on our own sockets, stamped by the kernel where the system can.

Connections are opened ahead of the load and kept in a last-in, first-out pool without a limit. A request takes an idle
one or opens its own; it never waits for another request's. No retries, with one exception: a kept connection that
turns out to be dead before any byte of a response is replaced once, and the record says so.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from loadgen.adapters.http.connection import Connection, Reception
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.dialer import Dialer
from loadgen.adapters.http.failures import WireError, connect_failure
from loadgen.adapters.http.head import RequestHead
from loadgen.adapters.http.limits import check_connections
from loadgen.adapters.http.readiness import Readiness
from loadgen.adapters.http.stamps import kernel_stamps_work, stamp_keeper
from loadgen.core.errors import InternalError, TargetError
from loadgen.core.record import FailureKind
from loadgen.core.run import TimingSource
from loadgen.core.units import nanoseconds, seconds
from loadgen.engine.ports import Clock, Ending, Inbox, Timeouts

if TYPE_CHECKING:
    import socket

_OPENING_AT_ONCE = 32  # below the backlog of ordinary servers
_SWEEP_MAX_S = 0.25
_SWEEP_MIN_S = 0.005


class NativeTransport:
    """Requests to one path of one destination. Belongs to the event loop that first uses it.

    `spares` idle connections are kept ready during an open loop, so that a burst need not wait for handshakes. With
    kernel stamps and `gather_s`, reads of many busy streams are gathered for so long, which saves a wake-up each; it
    delays a closed loop's next request by at most that and no stamp at all. Timeouts
    are looked after by one periodic sweep: they end an exchange at most a tenth of the limit, or 0.25 s, late, and
    never for bytes that had arrived while this process was too slow to read them.
    """

    def __init__(
        self,
        destination: Destination,
        clock: Clock,
        *,
        path: str,
        timeouts: Timeouts | None = None,
        spares: int = 0,
        gather_s: float = 0.0,
    ) -> None:
        """Raises ConfigError when the destination's headers or TLS files cannot be used."""
        timeouts = timeouts or Timeouts()
        self._destination = destination
        self._clock = clock
        self._head = RequestHead.of(destination, path)
        self._stamps = destination.unix_path is None and kernel_stamps_work()
        self._dialer = Dialer(destination, stamps=self._stamps)
        self._connect_s = timeouts.connect_s
        self._idle_ns = None if timeouts.idle_s is None else nanoseconds(timeouts.idle_s)
        self._total_ns = None if timeouts.total_s is None else nanoseconds(timeouts.total_s)
        limits = [limit for limit in (timeouts.idle_s, timeouts.total_s) if limit is not None]
        self._sweep_s = min(_SWEEP_MAX_S, max(_SWEEP_MIN_S, min(limits) / 10)) if limits else None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._spares = spares
        self._gather_s = gather_s if self._stamps else 0.0
        self._reception = Reception(clock)
        self._readiness: Readiness | None = None
        self._keeper: socket.socket | None = None
        self._connections: set[Connection] = set()
        self._idle: dict[Connection, None] = {}
        self._busy: set[Connection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._opening_slots = asyncio.Semaphore(_OPENING_AT_ONCE)
        self._closed = False

    @property
    def timing_source(self) -> TimingSource:
        """The kernel, if this system has stamps and none was missing so far; else this process."""
        kernel = self._stamps and self._reception.unstamped_reads == 0
        return TimingSource.KERNEL if kernel else TimingSource.USER

    def prepare(self, body: bytes, request_id: str) -> bytes:
        """The request as it will stand on the wire. Raises ConfigError for an id that no header can hold."""
        return self._head.request(body, request_id)

    async def open(self, connections: int) -> None:
        """Resolves the host and opens connections ahead of the load.

        Raises TargetError when not one can be opened, ConfigError when this process cannot hold that many.
        """
        check_connections(connections + self._spares, local_ports=self._destination.unix_path is None)
        try:
            await self._dialer.resolve()
            if connections > 0:
                self._idle[await self._dial(self._connect_s)] = None
        except WireError as error:
            raise TargetError(f"{self._destination.url}: {error.message}") from error
        self._fill(connections)
        while self._opening:
            await asyncio.wait(self._opening)

    async def exchange(self, prepared: Any, inbox: Inbox) -> Ending:
        """Sends at once, on an idle connection or a new one, and returns when the response has ended or failed."""
        if connection := self._take_idle():
            ending = await self._carry(connection, prepared, inbox)
            if ending is not None:
                return ending
            inbox.resent = True
        started = self._clock.now_ns()
        if inbox.sent_ns is None:
            inbox.sent_ns = started
        deadline = None if self._total_ns is None else inbox.sent_ns + self._total_ns
        try:
            connection = await self._dial(self._connect_limit_s(deadline))
        except WireError as error:
            now = self._clock.now_ns()
            if error.kind is FailureKind.CONNECT_TIMEOUT and deadline is not None and now >= deadline:
                message = f"{error.message}, and with that the total limit has passed"
                return Ending(closed_ns=now, kind=FailureKind.TOTAL_TIMEOUT, message=message)
            return Ending(closed_ns=now, kind=error.kind, message=error.message)
        inbox.connect_ns = self._clock.now_ns() - started
        ending = await self._carry(connection, prepared, inbox)
        if ending is None:
            raise InternalError("a fresh connection was taken for a reused one")
        if inbox.resent and inbox.first_byte_ns is None and ending.kind in (FailureKind.READ, FailureKind.WRITE):
            message = f"a kept connection and its replacement were both lost: {ending.message}"
            return Ending(closed_ns=ending.closed_ns, kind=FailureKind.REUSED_CONNECTION, message=message)
        return ending

    async def close(self) -> None:
        """Closes every connection, ends what is being opened, and cancels exchanges that are still under way."""
        self._closed = True
        opening = list(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        for connection in list(self._connections):
            connection.close()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
            self._sweep_timer = None
        if self._readiness is not None:
            self._readiness.close()
            self._readiness = None
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None

    async def _carry(self, connection: Connection, prepared: bytes, inbox: Inbox) -> Ending | None:
        """One request on one connection; None when the connection was kept too long (see `Connection.start`)."""
        self._busy.add(connection)
        if self._sweep_timer is None:
            self._schedule_sweep()
        done = connection.start(prepared, inbox)
        try:
            return await done
        finally:
            connection.abandon(done)

    def _take_idle(self) -> Connection | None:
        """The connection used last, if there is an idle one whose server has not closed it meanwhile."""
        found = None
        while self._idle and found is None:
            connection, _ = self._idle.popitem()
            if connection.usable():
                found = connection
        self._fill(self._spares)
        return found

    def _fill(self, wanted: int) -> None:
        """Has as many connections opened as are missing from `wanted` idle ones."""
        for _ in range(wanted - len(self._idle) - len(self._opening)):
            task = asyncio.get_running_loop().create_task(self._add_idle())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _add_idle(self) -> None:
        async with self._opening_slots:
            try:
                connection = await self._dial(self._connect_s)
            except WireError:
                return  # the request that finds none will open its own, and report what it meets
        self._idle[connection] = None

    def _connect_limit_s(self, deadline: int | None) -> float | None:
        """Seconds for opening a connection: the connect limit, or what is left of the total one if that is less."""
        if deadline is None:
            return self._connect_s
        left_s = max(0.0, seconds(deadline - self._clock.now_ns()))
        return left_s if self._connect_s is None else min(left_s, self._connect_s)

    async def _dial(self, limit_s: float | None) -> Connection:
        """A new connection, idle but not in the pool. Raises WireError."""
        watch = self._watch()
        dialled = await self._dialer.dial(limit_s)
        if self._closed:
            dialled.sock.close()
            raise asyncio.CancelledError
        connection = Connection(
            dialled.sock,
            dialled.tls,
            stamped=dialled.stamped,
            reception=self._reception,
            watch=watch,
            on_idle=self._on_idle,
            on_closed=self._on_closed,
        )
        self._connections.add(connection)
        return connection

    def _watch(self) -> Readiness:
        """The watcher of all connections, made once there is a loop. Raises WireError when nothing can be opened."""
        if self._readiness is None:
            try:
                self._readiness = Readiness(self._reception.begin_turn, gather_s=self._gather_s)
            except OSError as error:
                raise connect_failure(error, self._destination.url) from error
            self._keeper = stamp_keeper() if self._stamps else None
        return self._readiness

    def _on_idle(self, connection: Connection) -> None:
        self._busy.discard(connection)
        self._idle[connection] = None

    def _on_closed(self, connection: Connection) -> None:
        self._busy.discard(connection)
        self._idle.pop(connection, None)
        self._connections.discard(connection)

    def _schedule_sweep(self) -> None:
        if self._sweep_s is not None:
            self._sweep_timer = asyncio.get_running_loop().call_later(self._sweep_s, self._sweep)

    def _sweep(self) -> None:
        """Ends exchanges that have passed a limit."""
        self._sweep_timer = None
        self._reception.begin_turn()
        for connection in list(self._busy):
            connection.check(self._idle_ns, self._total_ns)
        if self._busy:
            self._schedule_sweep()
