"""Sends conversations: each request when it is due, has a slot under the cap, and its predecessor was answered."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from loadgen.core.request import JsonObject, PlannedRequest, RequestTemplate
from loadgen.core.schedule.bodies import encode_body, messages_of
from loadgen.core.units import nanoseconds
from loadgen.engine.flights import Flight, Flights
from loadgen.engine.lookahead import ReadyConversation
from loadgen.engine.outlook import NOT_CONNECTED
from loadgen.engine.ports import Clock
from loadgen.engine.stop import Stop


class Conversing:
    """What all conversations of a run share.

    `place` puts a planned request on the run's axis, `sending` is called just before one without a due instant leaves,
    `is_due` says whether an instant came before the run's end. `max_concurrency` caps requests in flight.
    """

    def __init__(
        self,
        *,
        flights: Flights,
        clock: Clock,
        stop: Stop,
        template: RequestTemplate,
        prepare: Callable[[bytes, str], Any],
        place: Callable[[PlannedRequest], PlannedRequest],
        sending: Callable[[PlannedRequest], None],
        is_due: Callable[[int], bool],
        max_concurrency: int | None,
    ) -> None:
        self._flights, self._clock, self._stop = flights, clock, stop
        self._template, self._prepare = template, prepare
        self._place, self._sending, self._is_due = place, sending, is_due
        self._slots = None if max_concurrency is None else asyncio.Semaphore(max_concurrency)

    async def send(self, conversation: ReadyConversation) -> bool:
        """Sends a conversation's requests in order; what a stop leaves unsent is dropped where it had fallen due.

        False when the last of them found no server to connect to.
        """
        connected = True
        history: list[JsonObject] = []
        ended_ns: int | None = None
        requests = conversation.planned.requests
        for index, (request, prepared) in enumerate(zip(requests, conversation.prepared, strict=True)):
            rest = requests[index + 1 :]
            planned = self._place(request)
            if not await self._until_ready(planned, ended_ns):
                self.drop_due(requests[index:])
                return connected
            async with self._slot(planned, ended_ns) as (has_slot, waited_ns):
                if not has_slot:
                    self._flights.drop(planned, cap_wait_ns=waited_ns)
                    self.drop_due(rest)
                    return connected
                if request.body is None:
                    prepared = self._prepare(encode_body(self._template, request.turn, history), request.request_id)
                self._sending(planned)
                flight = await self._fly(planned, prepared, waited_ns, rest)
            assert flight.ending is not None
            ended_ns = flight.ending.closed_ns
            connected = flight.ending.kind not in NOT_CONNECTED
            if flight.answered is not None:
                answer = await flight.answered
                if answer.assistant_message is None or flight.ending.kind is not None:
                    self._drop(rest)
                    return connected
                history += [*messages_of(request.turn), answer.assistant_message]
        return connected

    def drop_due(self, requests: Sequence[PlannedRequest]) -> bool:
        """Records those requests of a stopped run that fell due before its end; whether the first one did."""
        due = [(at_ns := self._place(request).due_ns) is not None and self._is_due(at_ns) for request in requests]
        self._drop([request for request, is_due in zip(requests, due, strict=True) if is_due])
        return bool(due) and due[0]

    def _drop(self, requests: Sequence[PlannedRequest]) -> None:
        for request in requests:
            self._flights.drop(self._place(request), cap_wait_ns=None)

    async def _until_ready(self, planned: PlannedRequest, ended_ns: int | None) -> bool:
        """Waits for the request's due instant, or for the think time after the previous answer; False on a stop."""
        ready_ns = planned.due_ns
        if ready_ns is None and ended_ns is not None and planned.turn.think_s is not None:
            ready_ns = ended_ns + nanoseconds(planned.turn.think_s)
        if ready_ns is None:
            return not self._stop.asked.is_set()
        return await self._stop.pause_until(ready_ns)

    @asynccontextmanager
    async def _slot(self, planned: PlannedRequest, ended_ns: int | None) -> AsyncIterator[tuple[bool, int | None]]:
        """A slot under the cap: whether there was one before a stop, and the wait for it and the previous turn.

        The wait (ns) is None for a request that has no due instant to be late against.
        """
        waited_ns = 0 if planned.due_ns is None or ended_ns is None else max(0, ended_ns - planned.due_ns)
        has_slot = True
        if self._slots is not None:
            asked_ns = self._clock.now_ns()
            has_slot = await self._stop.pause(self._slots.acquire())
            waited_ns += self._clock.now_ns() - asked_ns
        try:
            yield has_slot, None if planned.due_ns is None else waited_ns
        finally:
            if self._slots is not None and has_slot:
                self._slots.release()

    async def _fly(
        self, planned: PlannedRequest, prepared: Any, waited_ns: int | None, rest: Sequence[PlannedRequest]
    ) -> Flight:
        continues = any(request.turn.continues_answers for request in rest)
        try:
            return await self._flights.fly(planned, prepared, cap_wait_ns=waited_ns, want_answer=continues)
        except asyncio.CancelledError:
            self.drop_due(rest)
            raise
