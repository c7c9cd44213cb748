"""How an answer reaches its client: as a stream, event by event, or whole. This is where faults strike."""

from collections.abc import Sequence

from loadgen.sim.http import LAST_CHUNK, Exchange, chunk
from loadgen.sim.server.dialect import Dialect
from loadgen.sim.server.exchange import Answer, Part, RefusedError
from loadgen.sim.server.faults import Fault, FaultKind
from loadgen.sim.server.serving import Serving

_FAILURE = "the engine failed, as it was told to"


class _Reply:
    """The choices of one request on their way to its client."""

    def __init__(
        self, exchange: Exchange, answers: Sequence[Answer], dialect: Dialect, serving: Serving, fault: Fault | None
    ) -> None:
        self._exchange, self._answers, self._dialect, self._serving = exchange, answers, dialect, serving
        self._fault = fault
        self._unfinished = len(answers)
        exchange.on_gone = self.give_up

    def give_up(self) -> None:
        """Nothing more is generated."""
        for answer in self._answers:
            self._serving.cancel(answer)


class StreamReply(_Reply):
    """An event for each part. A stream interval and a client that does not read make one of several."""

    def __init__(
        self, exchange: Exchange, answers: Sequence[Answer], dialect: Dialect, serving: Serving, fault: Fault | None
    ) -> None:
        super().__init__(exchange, answers, dialect, serving, fault)
        self._short: dict[int, Part] = {}
        self._plain: bytes | None = None
        self._ready: list[bytes] = []
        self._coming: list[tuple[Answer, Part]] = []
        self._unread: dict[int, tuple[Answer, Part]] = {}
        self._sent = 0
        self._opened = False
        exchange.on_writable = self._catch_up
        exchange.begin("text/event-stream; charset=utf-8")

    def prepare(self, answer: Answer, part: Part) -> bool:
        """Makes an event of the part; of less than the stream interval only if it is the first or the last."""
        short = self._short.pop(answer.key, None)
        if short is not None:
            part = _joined(short, part)
        if part.start and not part.finished and part.stop - part.start < answer.asked.stream_interval:
            self._short[answer.key] = part
            return False
        if self._exchange.paused:
            self._coming.append((answer, part))
            return True
        self._ready.append(self._event(answer, part))
        if len(self._ready) == 1 and self._unfinished and self._fault is None:
            self._plain = self._ready[0]
        else:
            self._plain = None
        return True

    def deliver(self) -> None:
        """Sends what is ready. What a client that does not read would get waits, and grows."""
        if self._plain is not None:  # nearly always: while others wait for their turn there is nothing left to decide
            self._exchange.send(self._plain)
            self._plain = None
            self._ready.clear()
        if self._coming:
            for answer, part in self._coming:
                earlier = self._unread.get(answer.key)
                self._unread[answer.key] = (answer, part if earlier is None else _joined(earlier[1], part))
            self._coming = []
            if not self._exchange.paused:
                self._catch_up()
        if self._ready:
            ready, self._ready = self._ready, []
            self._send(ready)

    def _catch_up(self) -> None:
        unread, self._unread = self._unread, {}
        if unread:
            self._send([self._event(answer, part) for answer, part in unread.values()])

    def _event(self, answer: Answer, part: Part) -> bytes:
        data = self._dialect.part(answer, part)
        if not self._opened:
            self._opened = True
            data = b"".join(map(self._dialect.opening, self._answers)) + data
        if part.finished:
            self._unfinished -= 1
            if not self._unfinished:
                data += self._dialect.closing(self._answers)
        return chunk(data)

    def _send(self, events: Sequence[bytes]) -> None:
        if self._fault is not None and self._sent + len(events) > self._fault.after_events:
            self._exchange.send(b"".join(events[: self._fault.after_events - self._sent]))
            self._suffer(self._fault.kind)
            return
        self._sent += len(events)
        data = b"".join(events)
        if self._unfinished:
            self._exchange.send(data)
        else:
            self._exchange.send(data + LAST_CHUNK)
            self._exchange.end()

    def _suffer(self, kind: FaultKind) -> None:
        self.give_up()
        match kind:
            case FaultKind.RESET:
                self._exchange.reset()
            case FaultKind.TRUNCATED:
                self._exchange.cut()
            case FaultKind.ERROR_EVENT:
                self._exchange.send(chunk(self._dialect.error_event(_FAILURE)) + LAST_CHUNK)
                self._exchange.end()


class WholeReply(_Reply):
    """One body when all choices are complete."""

    def prepare(self, answer: Answer, part: Part) -> bool:
        """Makes the body with the last part."""
        self._unfinished -= part.finished
        if self._unfinished:
            return False
        self._body = self._dialect.whole(self._answers)
        return True

    def deliver(self) -> None:
        """Sends it, unless a fault strikes, of which a whole answer has only the moment of its sending to suffer."""
        match None if self._fault is None else self._fault.kind:
            case None:
                self._exchange.respond(200, "application/json", self._body)
            case FaultKind.RESET:
                self._exchange.reset()
            case FaultKind.TRUNCATED:
                self._exchange.cut()
            case FaultKind.ERROR_EVENT:
                refused = RefusedError(500, "InternalServerError", _FAILURE)
                self._exchange.respond(500, "application/json", self._dialect.refusal(refused))


def _joined(earlier: Part, later: Part) -> Part:
    return Part(earlier.start, later.stop, later.finished)
