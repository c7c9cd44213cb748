"""Takes ladders from standard input until that ends."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from loadgen.adapters.prometheus.families import Family
from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.adapters.prometheus.server import MetricsServer
from loadgen.core.errors import ExitCode, LoadgenError
from loadgen.core.metrics.summary import Summary
from loadgen.locustio.conductor import comparison, ladder
from loadgen.locustio.conductor.crew import RemoteCrew
from loadgen.locustio.conductor.following import Follower
from loadgen.locustio.conductor.telling import Teller
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.workers.crew import driven_by

_LONGEST_LINE = 64 * 2**20


class _Current:
    """The metrics of the ladder under way, or of the last one."""

    def __init__(self) -> None:
        self.monitor = Monitor()

    def families(self) -> list[Family]:
        return self.monitor.families()

    def take_in(self) -> None:
        self.monitor.take_in()


class Conductor:
    """Runs one ladder after the other."""

    def __init__(self, tell: Teller, current: _Current) -> None:
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
        """Nobody is there any more: what is under way ends in order."""
        if self._under_way is not None:
            if not self._under_way.done():
                os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait((self._under_way,))

    async def _perform(self, wanted: dict[str, Any]) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGINT, task.cancel)  # until the ladder takes signals itself
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
            _ignore_interrupts(loop)
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

        follower = self._current.monitor = Follower(self._tell, add)
        self._tell("begun", **measured.as_json())
        if options.arm:
            return await comparison.run_comparison(options, self._tell, follower)
        return await ladder.run_ladder(options, self._tell, follower)


def _ignore_interrupts(loop: asyncio.AbstractEventLoop) -> None:
    """Between ladders there is nothing to stop."""
    loop.add_signal_handler(signal.SIGINT, lambda: None)


async def _lines(take: Callable[[bytes], None]) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        take(line)


async def conduct(host: str, port: int) -> None:
    """Serves metrics there and takes ladders until standard input ends."""
    tell, current = Teller(), _Current()
    _ignore_interrupts(asyncio.get_running_loop())
    server = MetricsServer(current, host=host, port=port)
    try:
        tell("ready", metrics=server.url)
        conductor = Conductor(tell, current)
        await _lines(conductor.take)
        await conductor.finish()
    finally:
        server.close()


if __name__ == "__main__":
    asyncio.run(conduct(sys.argv[1], int(sys.argv[2])))
