"""The real-time loop: runs the engine's steps against a clock and hands out what each emits at its end.

The simulation's axis runs `speed` times as fast as the clock. A step starts where the one before ended, or when a
request comes to an idle engine, whatever the clock says by then: who is late catches up, and the plan never moves.
While a step lasts its emissions are prepared; at its end there is nothing left to do but to write them.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job
from loadgen.core.simulation.step import Step
from loadgen.engine.ports import Clock
from loadgen.sim.server.dialect import Load, Statistics
from loadgen.sim.server.exchange import Answer, Part
from loadgen.sim.server.lateness import Lateness

_LONGEST_LEAD_NS = 1_000_000


class Receiver(Protocol):
    """Who gets an answer, or several choices of one."""

    def prepare(self, answer: Answer, part: Part) -> bool:
        """Makes ready what the step under way adds to an answer; whether there will be something to deliver."""
        ...

    def deliver(self) -> None:
        """Sends what was prepared. Called at the step's end, once for all of its parts."""
        ...


class Serving:
    """One engine's life. Answers carry their arrival on the simulation's axis; `speed` 2 halves every duration."""

    def __init__(
        self, engine: Engine, statistics: Statistics, clock: Clock, lateness: Lateness, *, speed: float = 1.0
    ) -> None:
        self.statistics = statistics
        self._engine, self._clock, self._lateness, self._speed = engine, clock, lateness, speed
        self._arrivals: deque[tuple[Answer, Job]] = deque()
        self._arrived = asyncio.Event()
        self._open: dict[int, tuple[Answer, Receiver]] = {}
        self._under_way: Step | None = None
        self._burst = asyncio.Event()
        self._burst_ns = 0
        self._delivery_ns = 0.0

    @property
    def load(self) -> Load:
        """What the engine holds."""
        return Load(
            running=self._engine.running,
            waiting=self._engine.waiting + len(self._arrivals),
            kv_used_ratio=self._engine.kv_used_ratio,
        )

    def simulated_ns(self, clock_ns: int) -> int:
        """The instant of the simulation at an instant of the clock."""
        return round(clock_ns * self._speed)

    def submit(self, answer: Answer, blocks: tuple[int, ...], receiver: Receiver) -> None:
        """Takes in an answer to be generated: it is part of the first step that starts at or after its arrival."""
        job = Job(
            key=answer.key,
            prompt_tokens=len(answer.asked.prompt_ids),
            output_tokens=len(answer.output.ids),
            blocks=blocks,
        )
        if self._under_way is not None and answer.received_ns <= self._under_way.start_ns:
            self._lateness.missed += 1
        self._open[answer.key] = (answer, receiver)
        self._arrivals.append((answer, job))
        self._arrived.set()
        self.statistics.received(answer)

    def cancel(self, answer: Answer) -> None:
        """Drops an answer, whose client has left, and frees its memory. The step under way lasts no shorter for it."""
        if self._open.pop(answer.key, None) is None:
            return
        if not self._engine.cancel(answer.key):
            self._arrivals = deque(arrival for arrival in self._arrivals if arrival[0] is not answer)
        self.statistics.finished(answer, "abort")

    def forget_prefixes(self) -> bool:
        """Empties the prefix cache; False, and nothing is done, while requests hold memory."""
        if self._engine.running:
            return False
        self._engine.forget_prefixes()
        return True

    async def spare(self, work_ns: int) -> None:
        """Returns when that much work, ns of the clock, fits before the next burst, or right after that burst."""
        if self._under_way is not None and self._clock.now_ns() + work_ns > self._burst_ns:
            await self._burst.wait()

    async def run(self) -> None:
        """Serves until it is cancelled."""
        now_ns = 0
        while True:
            if not (self._engine.running or self._engine.waiting):
                while not self._arrivals:
                    self._arrived.clear()
                    await self._arrived.wait()
                now_ns = max(now_ns, self._arrivals[0][0].received_ns)
            while self._arrivals and self._arrivals[0][0].received_ns <= now_ns:
                self._engine.submit(self._arrivals.popleft()[1])
            step = self._engine.step(now_ns)
            if step is not None:
                self._under_way = step
                await self._follow(step)
                self._under_way = None
                now_ns = step.end_ns

    async def _follow(self, step: Step) -> None:
        """From a step's start to its end."""
        due_ns = self._burst_ns = self._clock_ns(step.end_ns)
        parts, receivers = self._prepare(step)
        self._burst_ns -= self._lead_ns(len(receivers))
        await self._clock.sleep_until(self._burst_ns)
        now_ns, instants = self._clock.now_ns, []
        for receiver in receivers:
            instants.append(now_ns())
            receiver.deliver()
        ended_ns = now_ns()
        self._lateness.note([instant - due_ns for instant in instants], ended_ns)
        if receivers:
            self._delivery_ns += ((ended_ns - instants[0]) / len(receivers) - self._delivery_ns) / 16
        self._count(step, parts)
        self._burst.set()
        self._burst.clear()

    def _lead_ns(self, deliveries: int) -> int:
        """How long before a step's end its burst begins, so that the step's end is in the middle of it."""
        return min(round(deliveries * self._delivery_ns / 2), _LONGEST_LEAD_NS)

    def _prepare(self, step: Step) -> tuple[list[tuple[Answer, Part]], list[Receiver]]:
        for key, tokens in step.cached_tokens.items():
            answer = self._open[key][0]
            if answer.scheduled_ns is None:
                answer.scheduled_ns, answer.cached_tokens = step.start_ns, tokens
        for key in step.preempted:
            self._open[key][0].preemptions += 1
        parts: list[tuple[Answer, Part]] = []
        receivers: dict[Receiver, None] = {}
        for emission in step.emissions():
            answer, receiver = self._open[emission.key]
            part = answer.take(emission, step.end_ns)
            parts.append((answer, part))
            if receiver.prepare(answer, part):
                receivers[receiver] = None
        return parts, list(receivers)

    def _count(self, step: Step, parts: Sequence[tuple[Answer, Part]]) -> None:
        """What the step gave, less what went to clients who left while it lasted."""
        kept = [(answer, part) for answer, part in parts if answer.key in self._open]
        self.statistics.stepped(step, kept, self.load)
        for answer, part in kept:
            if part.finished:
                del self._open[answer.key]
                self.statistics.finished(answer, answer.output.finish_reason)

    def _clock_ns(self, simulated_ns: int) -> int:
        return round(simulated_ns / self._speed)
