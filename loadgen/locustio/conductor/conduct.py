"""One ladder after the other, as they are asked for."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.adapters.prometheus.series import Family
from loadgen.core.errors import ExitCode, LoadgenError
from loadgen.core.metrics.summary import Summary
from loadgen.locustio.conductor import comparison, ladder
from loadgen.locustio.conductor.crew import RemoteCrew
from loadgen.locustio.conductor.following import Follower
from loadgen.locustio.conductor.stopping import nothing, on_interrupt
from loadgen.locustio.conductor.telling import Tell
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.push import pushing
from loadgen.wiring.workers.crew import driven_by


class Current:
    """The metrics of the ladder under way, or of the last one."""

    def __init__(self) -> None:
        self.monitor = Monitor()

    def families(self) -> list[Family]:
        """Everything as it is now."""
        return self.monitor.families()

    def take_in(self) -> None:
        """Folds what has ended since the last time."""
        self.monitor.take_in()


class Conductor:
    """Runs one ladder after the other."""

    def __init__(self, tell: Tell, current: Current) -> None:
        self._tell, self._current = tell, current
        self._under_way: asyncio.Task[None] | None = None
        self._crew: RemoteCrew | None = None

    def take(self, line: bytes) -> None:
        """What somebody wants. A ladder goes on beside what is read next."""
        wanted = msgspec.json.decode(line)
        match wanted["do"]:
            case "ladder" if self._under_way is None or self._under_way.done():
                self._under_way = asyncio.create_task(self._perform(wanted))
            case "from_worker" if self._crew is not None:
                self._crew.deliver(wanted["worker"], wanted["level"], wanted["line"])
            case "lost" if self._crew is not None:
                self._crew.lose(wanted["worker"])

    async def finish(self) -> None:
        """Nobody is there any more: what is under way ends in order, and workers cannot be told."""
        if self._crew is not None:
            self._crew.lose_all()
        if self._under_way is not None:
            if not self._under_way.done():
                os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait((self._under_way,))

    async def _perform(self, wanted: dict[str, Any]) -> None:
        task = asyncio.current_task()
        assert task is not None
        on_interrupt(task.cancel)
        try:
            options = resolve(LocustOptions, wanted["options"], environment={})
            with self._brought(wanted["workers"]):
                ended = await self._run(options)
        except LoadgenError as fault:
            ended = {"code": int(fault.exit_code), "interrupted": False, "error": str(fault)}
        except asyncio.CancelledError:
            task.uncancel()
            ended = {"code": int(ExitCode.INTERRUPTED), "interrupted": True}
        finally:
            on_interrupt(nothing)
        self._tell("ended", **ended)

    @contextmanager
    def _brought(self, workers: list[str] | None) -> Iterator[None]:
        """Has those workers drive every level, where there are some."""
        if workers is None:
            yield
            return
        self._crew = RemoteCrew(workers, self._tell)
        try:
            with driven_by(self._crew):
                yield
        finally:
            self._crew = None

    async def _run(self, options: LocustOptions) -> dict[str, Any]:
        kind = comparison if options.arm else ladder
        measured = kind.measured_of(options)

        def add(summary: Summary) -> None:
            measured.add(summary)
            self._tell("measured", **measured.as_json())

        follower = self._current.monitor = Follower(self._tell, add, out=options.out)
        self._tell("begun", **measured.as_json())
        run = comparison.run_comparison if options.arm else ladder.run_ladder
        with pushing(options.otlp_endpoint, follower, endpoint=options.endpoint, tell=self._note):
            return await run(options, self._tell, follower)

    def _note(self, line: str) -> None:
        self._tell("note", text=line)
