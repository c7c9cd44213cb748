"""A run in virtual time with its fakes."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from loadgen.core.request import Conversation, Endpoint, RequestTemplate, Text, Turn
from loadgen.core.run import Load, LoadMode
from loadgen.core.schedule.arrivals import constant_offsets
from loadgen.core.schedule.plan import plan
from loadgen.engine.ports import ServerProbe
from loadgen.engine.runner import Run, RunEnd, RunSettings
from tests.fakes.scripted_transport import MemorySink, Script, ScriptedTransport, chat_stream
from tests.fakes.virtual_time import FakeClock, run_virtual

TEMPLATE = RequestTemplate(endpoint=Endpoint.CHAT, model="m")
LEAD_NS = 20_000_000
"""From the start of a run to its first arrival."""


def singles() -> Iterator[Conversation]:
    """Conversations of one turn each, without end."""
    return (Conversation(turns=(Turn(prompt=Text(text=f"question {n}")),)) for n in itertools.count())


class Bench:
    """A run with its fakes, and what came of it."""

    def __init__(
        self,
        load: Load,
        *,
        answer: Callable[[int], Script] = lambda n: chat_stream(0.1, 0.2),
        conversations: Iterator[Conversation] | None = None,
        sink: MemorySink | None = None,
        offsets: Iterator[int] | None = None,
        probe: ServerProbe | None = None,
        **settings: Any,
    ) -> None:
        self.clock = FakeClock()
        self.transport = ScriptedTransport(self.clock, answer)
        self.sink = sink or MemorySink()
        self.probe = probe
        if load.mode is LoadMode.RATE and offsets is None:
            assert load.request_rate_rps is not None
            offsets = constant_offsets(load.request_rate_rps)
        self.planned = plan(
            conversations if conversations is not None else singles(),
            TEMPLATE,
            request_id_prefix="r",
            offsets=offsets,
            replay=load.mode is LoadMode.REPLAY,
            num_requests=load.num_requests,
            warmup_requests=settings.get("warmup_requests", 0),
        )
        self.settings = RunSettings(load=load, endpoint=Endpoint.CHAT, template=TEMPLATE, **settings)

    def start(self) -> Run:
        """The run, before anything of it has happened."""
        self.run = Run(
            self.planned,
            self.settings,
            clock=self.clock,
            transport=self.transport,
            sink=self.sink,
            probe=self.probe,
        )
        return self.run

    def execute(self, *, during: Callable[[Run], Any] | None = None) -> RunEnd:
        """Runs it to its end, beside what is done to it `during`."""

        async def work() -> RunEnd:
            run = self.start()
            meddling = asyncio.ensure_future(during(run)) if during is not None else None
            try:
                return await run.execute()
            finally:
                if meddling is not None:
                    meddling.cancel()

        return run_virtual(work())


def closed(concurrency: int, **more: Any) -> Load:
    """A closed loop."""
    return Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency, **more)
