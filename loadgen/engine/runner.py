"""One run: fills the look-ahead, opens connections, drives the plan, ends it in order and closes everything."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from loadgen.core.errors import LoadgenError
from loadgen.core.request import Endpoint, JsonObject, Phase, PlannedConversation, PlannedRequest, RequestTemplate
from loadgen.core.run import ClientFacts, Load, LoadMode, Window
from loadgen.core.schedule.bodies import encode_body, messages_of
from loadgen.core.units import nanoseconds
from loadgen.engine.flights import Flights
from loadgen.engine.health import Health
from loadgen.engine.idle import IdleWork
from loadgen.engine.live import LiveCounts
from loadgen.engine.lookahead import Lookahead, ReadyConversation
from loadgen.engine.ports import Clock, RecordSink, ServerProbe, Transport

_LEAD_NS = 20_000_000
_OPEN_LOOP_CONNECTIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the runner needs to know beside the plan. `grace_s` bounds the wait for requests in flight after a stop."""

    load: Load
    endpoint: Endpoint
    template: RequestTemplate
    warmup_requests: int = 0
    ramp_up_s: float = 0.0
    grace_s: float = 30.0
    keep_text: bool = False
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended. `requests` counts records; `window` is set where the end was by duration."""

    ended_by: str
    interrupted: bool
    requests: int
    window: Window | None
    client: ClientFacts
    late_preparations: int


class Run:
    """Drives one plan against one server. `stop` ends it in order, `abort` at once; both keep what was measured."""

    def __init__(
        self,
        plan: Iterator[PlannedConversation],
        settings: RunSettings,
        *,
        clock: Clock,
        transport: Transport,
        sink: RecordSink,
        probe: ServerProbe | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.live = LiveCounts()
        load = settings.load
        self.live.planned = None if load.num_requests is None else load.num_requests + settings.warmup_requests
        self.live.warmup_left = settings.warmup_requests
        self._transport = transport
        self._probe = probe
        self._health = Health()
        self._flights = Flights(
            transport=transport,
            clock=clock,
            sink=sink,
            endpoint=settings.endpoint,
            live=self.live,
            keep_text=settings.keep_text,
            secrets=settings.secrets,
            wake=lambda: self._idle.wake(),
            refused=lambda: self.stop("refused"),
        )
        self._lookahead = Lookahead(plan, transport.prepare)
        self._idle = IdleWork((self._flights.decode_some, self._lookahead.top_up))
        self._start_ns = 0
        self._ramp_end_ns = 0
        self._measure_start_ns: int | None = None
        self._deadline_ns: int | None = None
        self._stop_ns: int | None = None
        self._ended_by: str | None = None
        self._interrupted = False
        self._stopping = asyncio.Event()
        self._aborting = asyncio.Event()
        self._deadline_set = asyncio.Event()
        self._all_done = asyncio.Event()
        self._unstarted: PlannedConversation | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(load.max_concurrency) if load.max_concurrency is not None else None

    def stop(self, reason: str = "interrupt") -> None:
        """Starts no further request; those in flight have the grace to end. The first reason counts."""
        if self._ended_by is not None:
            return
        self._ended_by = self.live.stopping = reason
        self._interrupted = reason == "interrupt"
        self._stop_ns = self.clock.now_ns()
        self._health.end()
        self._stopping.set()
        for task in self._waiting:
            task.cancel()

    def abort(self) -> None:
        """Cancels what is in flight and ends the run."""
        self.stop("interrupt")
        self._interrupted = True
        self._aborting.set()

    async def execute(self) -> RunEnd:
        """Runs to the end. Raises LoadgenError for a fault of ours or a failed sink, after closing everything."""
        try:
            async with asyncio.TaskGroup() as group:
                heartbeat = group.create_task(self._health.beat())
                await self._prepare_ahead()
                await self._transport.open(self._connections())
                if self._probe is not None:
                    await self._probe.before()
                worker = group.create_task(self._idle.run())
                await self._drive(group)
                self._idle.finish()
                await worker
                heartbeat.cancel()
        except BaseExceptionGroup as faults:
            raise _first_fault(faults) from faults
        finally:
            await self._transport.close()
        return RunEnd(
            ended_by=self._ended_by or "requests",
            interrupted=self._interrupted,
            requests=self._flights.records,
            window=self._window(),
            client=self._health.facts(self._transport.timing_source),
            late_preparations=self._lookahead.late,
        )

    async def _prepare_ahead(self) -> None:
        """Fills the look-ahead before the clock starts, letting signals and the display in now and then."""
        while self._lookahead.top_up():
            if self._lookahead.size % 64 == 0:
                await asyncio.sleep(0)

    def _connections(self) -> int:
        load = self.settings.load
        if load.concurrency is not None:
            return load.concurrency
        return min(load.max_concurrency or _OPEN_LOOP_CONNECTIONS, _OPEN_LOOP_CONNECTIONS)

    async def _drive(self, group: asyncio.TaskGroup) -> None:
        load = self.settings.load
        self._start_ns = self.clock.now_ns() + _LEAD_NS
        self._ramp_end_ns = self._start_ns + nanoseconds(self.settings.ramp_up_s)
        watch = group.create_task(self._watch_deadline())
        if load.mode is LoadMode.CONCURRENCY:
            assert load.concurrency is not None
            for index in range(load.concurrency):
                self._spawn(group, self._slot(index / load.concurrency))
        else:
            self._spawn(group, self._dispatch(group))
        await _first_of(self._all_done, self._stopping)
        if self._ended_by is None:
            self._ended_by = "requests"
            self._health.end()
        else:
            await _first_of(self._all_done, self._aborting, timeout_s=self.settings.grace_s)
        watch.cancel()
        leftover = tuple(self._tasks)
        for task in leftover:
            task.cancel()
        await asyncio.gather(*leftover, return_exceptions=True)
        await self._drop_unstarted()

    def _spawn(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._despawn)

    def _despawn(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._all_done.set()

    async def _watch_deadline(self) -> None:
        await self._deadline_set.wait()
        assert self._deadline_ns is not None
        await self.clock.sleep_until(self._deadline_ns)
        self.stop("duration")

    async def _slot(self, ramp_share: float) -> None:
        """One slot of a closed loop: conversations one after the other, from warm-up into measurement without a gap."""
        if not await self._pause_until(self._start_ns + round(ramp_share * (self._ramp_end_ns - self._start_ns))):
            return
        while not self._stopping.is_set():
            conversation = self._lookahead.next()
            if conversation is None:
                self._health.end()
                return
            await self._converse(conversation)

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        """An open loop: starts each conversation at its due instant and waits for nothing else."""
        while (conversation := self._lookahead.next()) is not None:
            first = conversation.planned.requests[0]
            assert first.due_ns is not None
            due_ns = self._start_ns + first.due_ns
            if self._deadline_ns is not None and due_ns >= self._deadline_ns:
                await self._stopping.wait()
                return
            if first.phase is Phase.MEASURE:
                self._begin_measuring(due_ns)
            if not await self._pause_until(due_ns):
                self._unstarted = conversation.planned
                return
            self._spawn(group, self._converse(conversation))
        self._health.end()

    async def _drop_unstarted(self) -> None:
        """Records the arrivals that fell due before the end and that a dispatcher behind its time had not come to."""
        if self._unstarted is None:
            return
        for conversation in chain((self._unstarted,), self._lookahead.rest()):
            if not self._drop_due(conversation.requests) or self._aborting.is_set():
                return
            await asyncio.sleep(0)

    async def _converse(self, conversation: ReadyConversation) -> None:
        """Sends a conversation's requests, each when it is due and its predecessor has been answered."""
        history: list[JsonObject] = []
        ended_ns: int | None = None
        requests = conversation.planned.requests
        for index, (request, prepared) in enumerate(zip(requests, conversation.prepared, strict=True)):
            planned = self._placed(request)
            ready_ns = planned.due_ns
            if ready_ns is None and ended_ns is not None and request.turn.think_s is not None:
                ready_ns = ended_ns + nanoseconds(request.turn.think_s)
            if self._stopping.is_set() or (ready_ns is not None and not await self._pause_until(ready_ns)):
                self._drop_due(requests[index:])
                return
            blocked_ns = 0
            if planned.due_ns is not None and ended_ns is not None:
                blocked_ns = max(0, ended_ns - planned.due_ns)
            if self._slots is not None:
                asked_ns = self.clock.now_ns()
                if not await self._pause(self._slots.acquire()):
                    self._flights.drop(planned, cap_wait_ns=blocked_ns + self.clock.now_ns() - asked_ns)
                    self._drop_due(requests[index + 1 :])
                    return
                blocked_ns += self.clock.now_ns() - asked_ns
            try:
                if request.body is None:
                    body = encode_body(self.settings.template, request.turn, history)
                    prepared = self._transport.prepare(body, request.request_id)
                if planned.phase is Phase.MEASURE and planned.due_ns is None:
                    self._begin_measuring(self.clock.now_ns())
                continues = any(later.turn.continues_answers for later in requests[index + 1 :])
                waits = planned.due_ns is not None
                flight = await self._flights.fly(
                    planned, prepared, cap_wait_ns=blocked_ns if waits else None, want_answer=continues
                )
            except asyncio.CancelledError:
                self._drop_due(requests[index + 1 :])
                raise
            finally:
                if self._slots is not None:
                    self._slots.release()
            assert flight.ending is not None
            ended_ns = flight.ending.closed_ns
            if flight.answered is not None:
                answer = await flight.answered
                if answer.assistant_message is None or flight.ending.kind is not None:
                    self._drop_rest(requests[index + 1 :])
                    return
                history += [*messages_of(request.turn), answer.assistant_message]

    def _drop_due(self, requests: Sequence[PlannedRequest]) -> bool:
        """Records those of a stopped run's requests that fell due before its end; whether the first one did."""
        if self._stop_ns is None:
            return False
        end_ns = self._stop_ns if self._deadline_ns is None else min(self._stop_ns, self._deadline_ns)
        due = [request.due_ns is not None and self._start_ns + request.due_ns < end_ns for request in requests]
        self._drop_rest([request for request, is_due in zip(requests, due, strict=True) if is_due])
        return bool(due) and due[0]

    def _drop_rest(self, requests: Sequence[PlannedRequest]) -> None:
        """Records requests that will not be sent."""
        for request in requests:
            self._flights.drop(self._placed(request), cap_wait_ns=None)

    def _placed(self, request: PlannedRequest) -> PlannedRequest:
        """The request on the run's axis, and as warm-up while the load is still rising."""
        due_ns = None if request.due_ns is None else self._start_ns + request.due_ns
        rising = self._ramp_end_ns > self._start_ns and self.clock.now_ns() < self._ramp_end_ns
        phase = Phase.WARMUP if rising else request.phase
        return replace(request, due_ns=due_ns, phase=phase)

    def _begin_measuring(self, at_ns: int) -> None:
        if self._measure_start_ns is not None:
            return
        self._measure_start_ns = self.live.measuring_since_ns = at_ns
        self._health.begin()
        if self.settings.load.duration_s is not None:
            self._deadline_ns = at_ns + nanoseconds(self.settings.load.duration_s)
            self._deadline_set.set()

    async def _pause_until(self, due_ns: int) -> bool:
        """Waits for an instant; False when the run was stopped instead."""
        return await self._pause(self.clock.sleep_until(due_ns))

    async def _pause(self, wait: Coroutine[Any, Any, object]) -> bool:
        """Waits for something other than the server, which a stop cuts short; False when it did."""
        if self._stopping.is_set():
            wait.close()
            return False
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            await wait
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            task.uncancel()
            return False
        finally:
            self._waiting.discard(task)
        return True

    def _window(self) -> Window | None:
        """The measured span where it was asked for by duration; otherwise it follows from the records."""
        if self._measure_start_ns is None or self._deadline_ns is None:
            return None
        end_ns = self._deadline_ns if self._stop_ns is None else min(self._deadline_ns, self._stop_ns)
        return Window(start_ns=self._measure_start_ns, end_ns=end_ns, kind="duration")


async def _first_of(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Returns when one of the events is set or the time is over."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


def _first_fault(faults: BaseExceptionGroup[BaseException]) -> BaseException:
    """The fault to tell people: one of ours where there is one, else the first."""
    leaves: list[BaseException] = []
    pending: list[BaseException] = [faults]
    while pending:
        fault = pending.pop(0)
        if isinstance(fault, BaseExceptionGroup):
            pending = [*fault.exceptions, *pending]
        else:
            leaves.append(fault)
    return next((leaf for leaf in leaves if isinstance(leaf, LoadgenError)), leaves[0])
