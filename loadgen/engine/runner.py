"""One run: fills the look-ahead, opens connections, drives the plan, ends it in order and closes everything."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from loadgen.core.errors import LoadgenError
from loadgen.core.request import Endpoint, Phase, PlannedConversation, PlannedRequest, RequestTemplate
from loadgen.core.run import ClientFacts, Load, LoadMode, Window
from loadgen.core.schedule.share import WHOLE, Share
from loadgen.core.units import nanoseconds
from loadgen.engine.conversing import Conversing
from loadgen.engine.flights import Flights
from loadgen.engine.health import Health
from loadgen.engine.idle import IdleWork
from loadgen.engine.live import LiveCounts
from loadgen.engine.lookahead import Lookahead
from loadgen.engine.outlook import Outlook, reason_to_give_up
from loadgen.engine.ports import Clock, Partners, RecordSink, ServerProbe, Transport
from loadgen.engine.stop import Stop

LEAD_NS = 20_000_000
"""From the moment at which all is ready to the first request."""

_OPEN_LOOP_CONNECTIONS = 64
_RECONNECT_NS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What the runner needs to know beside the plan. `grace_s` bounds the wait for requests in flight after a stop.

    `load` is that of the whole run, of which this process drives its `share`; the plan holds that share alone.
    """

    load: Load
    share: Share = WHOLE
    endpoint: Endpoint
    template: RequestTemplate
    warmup_requests: int = 0
    ramp_up_s: float = 0.0
    grace_s: float = 30.0
    keep_text: bool = False
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended. `requests` counts records; `window` is set where the end was by duration.

    `exhausted_ns` is when a slot of a closed loop first found no request left, None in an open loop or when none did.
    """

    ended_by: str
    interrupted: bool
    requests: int
    window: Window | None
    client: ClientFacts
    late_preparations: int
    exhausted_ns: int | None = None


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
        partners: Partners | None = None,
    ) -> None:
        """`partners` are the other processes of a run of several: with them it is agreed when to begin and to end."""
        load, share = settings.load, settings.share
        self.settings = settings
        self.clock = clock
        self.live = LiveCounts()
        self.live.planned = None if load.num_requests is None else load.num_requests + settings.warmup_requests
        self.live.warmup_planned = settings.warmup_requests
        self._transport = transport
        self._probe = probe
        self._partners = partners
        self._health = Health()
        self._stop = Stop(clock)
        self._flights = Flights(
            transport=transport,
            clock=clock,
            sink=sink,
            endpoint=settings.endpoint,
            live=self.live,
            keep_text=settings.keep_text,
            secrets=settings.secrets,
            wake=lambda: self._idle.wake(),
            seen=self._look_ahead,
        )
        self._lookahead = Lookahead(plan, transport.prepare)
        self._idle = IdleWork((self._flights.decode_some, self._lookahead.top_up))
        self._conversing = Conversing(
            flights=self._flights,
            clock=clock,
            stop=self._stop,
            template=settings.template,
            prepare=transport.prepare,
            place=self._placed,
            sending=self._sending,
            is_due=self._is_due,
            max_concurrency=None if load.max_concurrency is None else len(share.slots(load.max_concurrency)),
        )
        self._start_ns = 0
        self._ramp_end_ns = 0
        self._began = False
        self._exhausted_ns: int | None = None
        self._measure_start_ns: int | None = None
        self._deadline_ns: int | None = None
        self._ending: asyncio.Task[None] | None = None
        self._all_done = asyncio.Event()
        self._unstarted: PlannedConversation | None = None
        self._tasks: set[asyncio.Task[object]] = set()

    def stop(self, reason: str = "interrupt") -> None:
        """Starts no further request; those in flight have the grace to end. The first reason counts."""
        self._stop.ask(reason)
        self.live.stopping = self._stop.reason
        self._health.end()

    def abort(self) -> None:
        """Cancels what is in flight and ends the run."""
        self._stop.abort()
        self.live.stopping = self._stop.reason
        self._health.end()

    @property
    def outlook(self) -> Outlook:
        """What this process's records say of whether to go on."""
        return self._flights.outlook

    def measure_from(self, at_ns: int) -> None:
        """The measured phase begins at that instant (run axis), unless it has begun before it already."""
        if self._measure_start_ns is not None and self._measure_start_ns <= at_ns:
            return
        self._measure_start_ns = self.live.measuring_since_ns = at_ns
        self._health.begin()
        if self.settings.load.duration_s is not None:
            self._deadline_ns = at_ns + nanoseconds(self.settings.load.duration_s)
            self._forget_deadline()
            self._ending = asyncio.create_task(self._end_at(self._deadline_ns))

    async def execute(self) -> RunEnd:
        """Runs to the end. Raises LoadgenError for a fault of ours or a failed sink, after closing everything."""
        try:
            async with asyncio.TaskGroup() as group:
                heartbeat = group.create_task(self._health.beat())
                await self._prepare_ahead()
                await self._transport.open(self._connections())
                if self._probe is not None:
                    await self._probe.before()
                    group.create_task(self._probe.during())
                worker = group.create_task(self._idle.run())
                await self._drive(group)
                self._idle.finish()
                await worker
                heartbeat.cancel()
                if self._probe is not None:
                    await self._probe.after()
        except BaseExceptionGroup as faults:
            raise _first_fault(faults) from faults
        finally:
            self._forget_deadline()
            await self._transport.close()
        return RunEnd(
            ended_by=self._stop.reason or "requests",
            interrupted=self._stop.interrupted,
            requests=self._flights.records,
            window=self._window(),
            client=self._health.facts(self._transport.timing_source),
            late_preparations=self._lookahead.late,
            exhausted_ns=self._exhausted_ns,
        )

    async def _prepare_ahead(self) -> None:
        """Fills the look-ahead before the clock starts, letting signals and the display in now and then."""
        while self._lookahead.top_up():
            if self._lookahead.size % 64 == 0:
                await asyncio.sleep(0)

    def _forget_deadline(self) -> None:
        if self._ending is not None:
            self._ending.cancel()

    def _connections(self) -> int:
        load = self.settings.load
        slots = load.concurrency or min(load.max_concurrency or _OPEN_LOOP_CONNECTIONS, _OPEN_LOOP_CONNECTIONS)
        return len(self.settings.share.slots(slots))

    async def _drive(self, group: asyncio.TaskGroup) -> None:
        load = self.settings.load
        self._start_ns = self.clock.now_ns() + LEAD_NS if self._partners is None else await self._partners.start_ns()
        self._ramp_end_ns = self._start_ns + nanoseconds(self.settings.ramp_up_s)
        if load.mode is LoadMode.CONCURRENCY:
            assert load.concurrency is not None
            for slot in self.settings.share.slots(load.concurrency):
                self._spawn(group, self._slot(slot / load.concurrency))
        else:
            self._spawn(group, self._dispatch(group))
        await _first_of(self._all_done, self._stop.asked)
        if self._stop.asked.is_set():
            await _first_of(self._all_done, self._stop.aborted, timeout_s=self.settings.grace_s)
        self._health.end()
        self._forget_deadline()
        leftover = tuple(self._tasks)
        for task in leftover:
            task.cancel()
        await asyncio.gather(*leftover, return_exceptions=True)
        await self._drop_unstarted()

    def _spawn(self, group: asyncio.TaskGroup, work: Coroutine[Any, Any, object]) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._despawn)

    def _despawn(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._all_done.set()

    async def _end_at(self, deadline_ns: int) -> None:
        await self.clock.sleep_until(deadline_ns)
        self.stop("duration")

    async def _slot(self, ramp_share: float) -> None:
        """One slot of a closed loop: conversations one after the other, from warm-up into measurement without a gap."""
        begin_ns = self._start_ns + round(ramp_share * (self._ramp_end_ns - self._start_ns))
        if not await self._stop.pause_until(begin_ns):
            return
        while not self._stop.asked.is_set():
            conversation = self._lookahead.next()
            if conversation is None:
                if self._exhausted_ns is None:
                    self._exhausted_ns = self.clock.now_ns()
                self._health.end()
                return
            if not await self._conversing.send(conversation):
                # Otherwise a closed loop would count failures as fast as the system refuses connections.
                await self._stop.pause_until(self.clock.now_ns() + _RECONNECT_NS)

    async def _dispatch(self, group: asyncio.TaskGroup) -> None:
        """An open loop: starts each conversation at its due instant and waits for nothing else."""
        while (conversation := self._lookahead.next()) is not None:
            first = conversation.planned.requests[0]
            assert first.due_ns is not None
            due_ns = self._start_ns + first.due_ns
            if self._deadline_ns is not None and due_ns >= self._deadline_ns:
                await self._stop.asked.wait()
                return
            if first.phase is Phase.MEASURE:
                self._begin_measuring(due_ns)
            if not await self._stop.pause_until(due_ns):
                self._unstarted = conversation.planned
                return
            self._spawn(group, self._conversing.send(conversation))
        self._health.end()

    async def _drop_unstarted(self) -> None:
        """Records the arrivals that fell due before the end and that a dispatcher behind its time had not come to."""
        if self._unstarted is None:
            return
        for conversation in chain((self._unstarted,), self._lookahead.rest()):
            if not self._conversing.drop_due(conversation.requests) or self._stop.aborted.is_set():
                return
            await asyncio.sleep(0)

    def _is_due(self, due_ns: int) -> bool:
        """Whether an instant came before the end of a run that was stopped."""
        ends = [end_ns for end_ns in (self._stop.at_ns, self._deadline_ns) if end_ns is not None]
        return self._stop.at_ns is not None and due_ns < min(ends)

    def _sending(self, planned: PlannedRequest) -> None:
        """The first measured request of a closed loop begins the measured phase; an open loop's dispatcher does."""
        if planned.phase is Phase.MEASURE and planned.due_ns is None:
            self._begin_measuring(self.clock.now_ns())

    def _placed(self, request: PlannedRequest) -> PlannedRequest:
        """The request on the run's axis, and as warm-up while the load is still rising."""
        due_ns = None if request.due_ns is None else self._start_ns + request.due_ns
        rising = self._ramp_end_ns > self._start_ns and self.clock.now_ns() < self._ramp_end_ns
        phase = Phase.WARMUP if rising else request.phase
        return replace(request, due_ns=due_ns, phase=phase)

    def _begin_measuring(self, at_ns: int) -> None:
        """The first measured request of this process; its partners may have begun before it."""
        if self._began:
            return
        self._began = True
        self.measure_from(at_ns)
        if self._partners is not None:
            self._partners.began(at_ns)

    def _look_ahead(self) -> None:
        """Gives up what cannot succeed; partners decide that together."""
        if self._partners is None and (reason := reason_to_give_up((self.outlook,))) is not None:
            self.stop(reason)

    def _window(self) -> Window | None:
        """The measured span of a run that its duration or somebody ended; otherwise it follows from the records."""
        if self._measure_start_ns is None or self._deadline_ns is None or self._stop.at_ns is None:
            return None
        end_ns = min(self._deadline_ns, self._stop.at_ns)
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
