"""The seams of the engine: Clock, Transport, RecordSink, Partners, ServerProbe, Launcher, and the inbox between
transport and decoder.
"""

import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from loadgen.core.record import FailureKind, RequestRecord
from loadgen.core.run import TimingSource


class Clock(Protocol):
    """One monotonic axis. `now_ns` is 0 at the run's origin."""

    @property
    def origin_unix_ns(self) -> int:
        """Wall time of the axis' zero, for correlation only."""
        ...

    def now_ns(self) -> int:
        """Nanoseconds since the origin."""
        ...

    async def sleep_until(self, due_ns: int) -> None:
        """Returns at `due_ns` or later, never earlier."""
        ...


class Inbox:
    """Where a transport puts what it receives for one request: plain lists, appended to on the measuring path.

    `stamps[i]` is the arrival (ns, run axis) of body bytes `pieces[i]`, transfer coding already removed.
    `sent_ns` is set just before the request's first byte leaves, `connect_ns` when the request had to wait for a
    connection to open. `lag_max_ns` is the largest delay of a read behind the kernel's stamp, None without kernel
    stamps; `stalled_stamps` are the stamps of reads so late that the kernel may have merged segments.
    The decoder empties `stamps` and `pieces` from time to time; a transport only ever appends.
    """

    __slots__ = (
        "bytes_received",
        "connect_ns",
        "content_type",
        "first_byte_ns",
        "headers_ns",
        "lag_max_ns",
        "last_activity_ns",
        "pieces",
        "resent",
        "retry_after_s",
        "sent_ns",
        "stalled_stamps",
        "stamps",
        "status",
    )

    def __init__(self) -> None:
        self.sent_ns: int | None = None
        self.headers_ns: int | None = None
        self.first_byte_ns: int | None = None
        self.last_activity_ns: int | None = None
        self.connect_ns: int | None = None
        self.status: int | None = None
        self.content_type: str | None = None
        self.retry_after_s: float | None = None
        self.stamps: list[int] = []
        self.pieces: list[bytes] = []
        self.stalled_stamps: list[int] = []
        self.lag_max_ns: int | None = None
        self.bytes_received = 0
        self.resent = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an exchange ended on the wire. `kind` None: the HTTP message was complete. `closed_ns` on the run's axis."""

    closed_ns: int
    kind: FailureKind | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds; None is no limit.

    `idle_s` bounds silence before the response (then the kind is read_timeout) and within it (idle_timeout).
    """

    connect_s: float | None = 10.0
    idle_s: float | None = 300.0
    total_s: float | None = None


class Transport(Protocol):
    """Carries one prepared request to the server and what comes back into an inbox.

    A server's or network's fault is an `Ending` with a kind, never an exception. Cancelling `exchange` closes its
    connection and raises CancelledError.
    """

    @property
    def timing_source(self) -> TimingSource:
        """Who stamps the arrivals."""
        ...

    def prepare(self, body: bytes, request_id: str) -> Any:
        """All that can be done before the clock starts: headers and body as one value for `exchange`."""
        ...

    async def open(self, connections: int) -> None:
        """Opens that many connections ahead of the load. Raises TargetError when not one can be opened."""
        ...

    async def exchange(self, prepared: Any, inbox: Inbox) -> Ending:
        """Sends the request at once and returns when its response has ended, failed or timed out."""
        ...

    async def close(self) -> None:
        """Closes every connection; afterwards no descriptor of this transport is open."""
        ...


class RecordSink(Protocol):
    """Takes records as requests end. Never loses one silently: a full or failed sink raises StoreError."""

    def put(self, record: RequestRecord) -> None:
        """Accepts one record."""
        ...


class Partners(Protocol):
    """The other processes of a run that several drive, each its share: what they agree on. The run's axis is common."""

    async def start_ns(self) -> int:
        """Called when all is ready for the first request: the instant at which the load begins, for all of them."""
        ...

    def began(self, at_ns: int) -> None:
        """The first measured request of this process is due, or leaves, at that instant; the earliest one counts."""
        ...


class ServerProbe(Protocol):
    """Reads a server's own figures around and during a run, and keeps them. Failures are facts, not exceptions."""

    async def before(self) -> None:
        """Called before the first request leaves."""
        ...

    async def during(self) -> None:
        """Started after `before`; returns once `after` is called."""
        ...

    async def after(self) -> None:
        """Called when the last request has ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """A server that is ready.

    `url` is its base URL and `how` the way it came to run, both without secrets. `start_s` is what it took until it was
    ready, `log` the file with what it writes.
    """

    url: str
    how: str
    start_s: float
    pid: int | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """A server that ended unasked: its exit status, -N for signal N, None when unknown, and the end of its log."""

    exit_status: int | None
    log_tail: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What became of it, on the first line, and the end of its log on the others."""
        status = self.exit_status
        if status is None:
            what = "ended, with an exit status that nobody knows"
        elif status >= 0:
            what = f"ended with exit status {status}"
        else:
            names = {number.value: number.name for number in signal.Signals}
            what = f"was ended by {names.get(-status, f'signal {-status}')}"
        return "\n".join((what, *self.log_tail))


class StopKind(StrEnum):
    """How a server came to its end."""

    LEFT_RUNNING = "left running"
    HAD_ENDED = "had ended"
    ASKED = "asked"
    KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """How a server ended, and its exit status (-N for signal N) where there is one.

    KILLED: some of its processes had not ended when they had been asked and given time.
    """

    how: StopKind
    exit_status: int | None = None


class Launcher(Protocol):
    """Starts one server, once, and ends it for sure, also when this process should die."""

    async def start(self) -> Launched:
        """Returns when the server is ready.

        Raises ConfigError for what cannot be started, TargetError with the end of the log when it ended or did not
        become ready in time. Nothing is left running then, nor when this is cancelled.
        """
        ...

    def exited(self) -> Exited | None:
        """What is known of a server that has ended unasked; None as long as it runs, or when that cannot be known."""
        ...

    async def stop(self) -> Stopped:
        """Returns when nothing of it is left; a second time with the same. Raises TargetError when that cannot be."""
        ...
