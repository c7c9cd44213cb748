"""Workers in virtual time: real runs and the real leader's side, with messages that take a while between them."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from loadgen.core.record import RequestRecord
from loadgen.core.request import Conversation, Endpoint, RequestTemplate, Text, Turn
from loadgen.core.run import Load, LoadMode
from loadgen.core.schedule.arrivals import constant_offsets
from loadgen.core.schedule.plan import plan
from loadgen.core.schedule.share import Share
from loadgen.engine.runner import Run, RunEnd, RunSettings
from loadgen.wiring.workers.leading import Leading
from loadgen.wiring.workers.messages import Began, Ended, Measuring, Progress, Ready, Stop, ToWorker
from tests.fakes.scripted_transport import MemorySink, Script, ScriptedTransport, chat_stream
from tests.fakes.virtual_time import FakeClock, run_virtual

START_NS = 100_000_000
DELAY_S = 0.003
TEMPLATE = RequestTemplate(endpoint=Endpoint.CHAT, model="m")


def questions() -> Iterator[Conversation]:
    """Conversations of one turn each, without end."""
    number = 0
    while True:
        yield Conversation(turns=(Turn(prompt=Text(text=f"question {number}")),))
        number += 1


class _Member:
    """One worker: a run, and how it talks."""

    def __init__(self, team: "VirtualTeam", index: int) -> None:
        self._team, self._index = team, index
        load, share = team.load, Share(index=index, count=team.workers)
        self.transport = ScriptedTransport(team.clock, team.answer)
        self.sink = MemorySink()
        conversations = plan(
            questions(),
            TEMPLATE,
            request_id_prefix="r",
            offsets=constant_offsets(load.request_rate_rps) if load.request_rate_rps is not None else None,
            num_requests=load.num_requests,
            warmup_requests=team.settings.get("warmup_requests", 0),
            share=share,
            slots=load.concurrency or load.max_concurrency,
        )
        settings = RunSettings(load=load, share=share, endpoint=Endpoint.CHAT, template=TEMPLATE, **team.settings)
        self.run = Run(
            conversations, settings, clock=team.clock, transport=self.transport, sink=self.sink, partners=self
        )
        self.task: asyncio.Task[None] | None = None

    async def start_ns(self) -> int:
        return START_NS

    def began(self, at_ns: int) -> None:
        self._team.heard(self._index, Began(at_ns=at_ns))

    async def work(self) -> None:
        reporting = asyncio.create_task(self._report())
        try:
            end = await self.run.execute()
        finally:
            reporting.cancel()
        self._team.heard(self._index, Ended(end=end, last=self._progress()))

    def hear(self, message: ToWorker) -> None:
        match message:
            case Measuring(at_ns=at_ns):
                self.run.measure_from(at_ns)
            case Stop(reason=reason):
                self.run.stop(reason)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            self._team.heard(self._index, self._progress())

    def _progress(self) -> Progress:
        return Progress(counts=self.run.live, outlook=self.run.outlook)


class VirtualTeam:
    """A run of several workers; `answer` is as for a scripted transport, for each worker's own requests."""

    def __init__(
        self,
        load: Load,
        *,
        workers: int = 2,
        answer: Callable[[int], Script] = lambda n: chat_stream(0.1, 0.2),
        **settings: Any,
    ) -> None:
        self.load, self.workers, self.answer, self.settings = load, workers, answer, settings
        self.clock = FakeClock()
        data = Ready(requests=1)
        self.leading = Leading(load, workers=workers, warmup_requests=settings.get("warmup_requests", 0), data=data)
        for index in range(workers):
            self.leading.take(index, data)
        self.members: list[_Member] = []

    def heard(self, index: int, message: Any) -> None:
        """A worker says something; it arrives, and what follows from it, some milliseconds later."""

        def arrive() -> None:
            self.tell(self.leading.take(index, message))

        asyncio.get_running_loop().call_later(DELAY_S, arrive)

    def tell(self, message: ToWorker | None) -> None:
        """Says something to all workers."""
        if message is not None:
            for member in self.members:
                asyncio.get_running_loop().call_later(DELAY_S, member.hear, message)

    def lose(self, index: int) -> None:
        """A worker is gone, and what it had in flight with it."""
        task = self.members[index].task
        assert task is not None
        task.cancel()
        self.tell(self.leading.lose(index))

    def execute(self, *, during: Callable[["VirtualTeam"], Any] | None = None) -> RunEnd:
        """Runs to the end."""

        async def work() -> RunEnd:
            self.members = [_Member(self, index) for index in range(self.workers)]
            for member in self.members:
                member.task = asyncio.create_task(member.work())
            if during is not None:
                await during(self)
            await asyncio.gather(*(member.task for member in self.members if member.task), return_exceptions=True)
            await asyncio.sleep(2 * DELAY_S)
            assert self.leading.over
            return self.leading.result({index: len(self.members[index].sink.records) for index in self.leading.lost})

        return run_virtual(work())

    @property
    def records(self) -> list[RequestRecord]:
        """Those of all workers, in the order of the plan."""
        found = (record for member in self.members for record in member.sink.records)
        return sorted(found, key=lambda record: record.seq)


def closed(concurrency: int, **more: Any) -> Load:
    """A closed loop."""
    return Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency, **more)


def at_rate(rate_rps: float, **more: Any) -> Load:
    """An open loop."""
    return Load(mode=LoadMode.RATE, request_rate_rps=rate_rps, **more)
