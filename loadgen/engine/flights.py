"""Requests in flight: sent through the transport, decoded when there is time for it, and recorded when they end."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from loadgen.core.record import Outcome
from loadgen.core.request import Endpoint, Phase, PlannedRequest
from loadgen.core.stream.answer import Answer
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.core.stream.outcome import Received, record_of
from loadgen.engine.live import LiveCounts
from loadgen.engine.outlook import Outlook
from loadgen.engine.ports import Clock, Ending, Inbox, RecordSink, Transport

ROUND_NS = 250_000_000
_PIECES_A_STEP = 64


class Flight:
    """One request on its way: what was planned, what came back so far, how the exchange ended."""

    __slots__ = ("answered", "cancelled", "cap_wait_ns", "decoder", "ending", "inbox", "planned")

    def __init__(
        self, planned: PlannedRequest, cap_wait_ns: int | None, answered: asyncio.Future[Answer] | None
    ) -> None:
        self.planned = planned
        self.cap_wait_ns = cap_wait_ns
        self.answered = answered
        self.inbox = Inbox()
        self.decoder: AnswerDecoder | None = None
        self.ending: Ending | None = None
        self.cancelled = False


class Flights:
    """Sends requests and turns what comes back into exactly one record each.

    `decode_some` is the idle job: it first finishes ended exchanges, then, four times a second, takes in what running
    ones have received, which keeps their buffers small and the live counts fresh.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        clock: Clock,
        sink: RecordSink,
        endpoint: Endpoint,
        live: LiveCounts,
        keep_text: bool = False,
        secrets: tuple[str, ...] = (),
        wake: Callable[[], None],
        seen: Callable[[], None],
    ) -> None:
        """`wake` is called when there is something to decode.

        `seen` is called when a record has changed the `outlook`.
        """
        self._wake, self._seen = wake, seen
        self.outlook = Outlook()
        self._transport, self._clock, self._sink = transport, clock, sink
        self._endpoint, self._keep_text, self._secrets = endpoint, keep_text, secrets
        self._live = live
        self._flying: set[Flight] = set()
        self._ended: deque[Flight] = deque()
        self._round: list[Flight] = []
        self._round_ns = 0
        self.records = 0

    async def fly(
        self, planned: PlannedRequest, prepared: Any, *, cap_wait_ns: int | None, want_answer: bool = False
    ) -> Flight:
        """Sends one request and returns when its exchange has ended; its record follows when it has been decoded."""
        answered = asyncio.get_running_loop().create_future() if want_answer else None
        flight = Flight(planned, cap_wait_ns, answered)
        self._flying.add(flight)
        live = self._live
        live.sent += 1
        live.in_flight += 1
        try:
            flight.ending = await self._transport.exchange(prepared, flight.inbox)
        except asyncio.CancelledError:
            flight.cancelled = True
            raise
        finally:
            if flight.ending is None:
                flight.ending = Ending(closed_ns=self._clock.now_ns())
            live.in_flight -= 1
            live.last_progress_ns = flight.ending.closed_ns
            self._flying.discard(flight)
            self._ended.append(flight)
            self._wake()
        return flight

    def drop(self, planned: PlannedRequest, *, cap_wait_ns: int | None) -> None:
        """Records a request that was due and will never be sent."""
        self._record(planned, Received(dropped=True, cap_wait_ns=cap_wait_ns), None)

    def decode_some(self) -> bool:
        """Decodes a small piece of what has arrived; False when there is nothing to do now."""
        if self._ended:
            flight = self._ended[0]
            if not self._feed(flight):
                self._ended.popleft()
                self._finish(flight)
            return True
        while self._round:
            flight = self._round.pop()
            if flight.inbox.pieces and flight in self._flying:
                if self._feed(flight):
                    self._round.append(flight)
                return True
        now_ns = self._clock.now_ns()
        if self._flying and now_ns - self._round_ns >= ROUND_NS:
            self._round_ns = now_ns
            self._round = list(self._flying)
            return True
        return False

    def _feed(self, flight: Flight) -> bool:
        """Decodes up to _PIECES_A_STEP reads; says whether more are waiting."""
        inbox = flight.inbox
        if not inbox.pieces:
            return False
        decoder = flight.decoder
        if decoder is None:
            decoder = flight.decoder = AnswerDecoder(
                self._endpoint,
                keep_text=self._keep_text or flight.answered is not None,
                content_type=inbox.content_type,
            )
        count = min(len(inbox.pieces), _PIECES_A_STEP)
        events = decoder.events
        for stamp_ns, piece in zip(inbox.stamps[:count], inbox.pieces[:count], strict=True):
            decoder.feed(stamp_ns, piece)
        del inbox.stamps[:count], inbox.pieces[:count]
        self._live.events += decoder.events - events
        return bool(inbox.pieces)

    def _finish(self, flight: Flight) -> None:
        answer = None if flight.decoder is None else flight.decoder.finish()
        inbox, ending = flight.inbox, flight.ending
        assert ending is not None
        received = Received(
            sent_ns=inbox.sent_ns,
            headers_ns=inbox.headers_ns,
            closed_ns=ending.closed_ns,
            http_status=inbox.status,
            retry_after=inbox.retry_after_s is not None,
            kind=ending.kind,
            message=ending.message,
            resent=inbox.resent,
            stamp_lag_ns=inbox.lag_max_ns,
            stalled_stamps=tuple(inbox.stalled_stamps),
            connect_ns=inbox.connect_ns,
            cap_wait_ns=flight.cap_wait_ns,
            cancelled=flight.cancelled,
        )
        self._record(flight.planned, received, answer)
        if flight.answered is not None and not flight.answered.done():
            flight.answered.set_result(answer if answer is not None else Answer())

    def _record(self, planned: PlannedRequest, received: Received, answer: Answer | None) -> None:
        record = record_of(planned, received, answer, secrets=self._secrets)
        if not self._keep_text and record.text is not None:
            record = replace(record, text=None)
        self._sink.put(record)
        self.records += 1
        self.outlook.observe(record)
        self._seen()
        if planned.phase is Phase.WARMUP:
            self._live.warmup_ended += 1
        live = self._live
        match record.outcome:
            case Outcome.COMPLETED:
                live.completed += 1
            case Outcome.FAILED:
                live.failed += 1
            case Outcome.CANCELLED:
                live.cancelled += 1
            case Outcome.DROPPED:
                live.dropped += 1
