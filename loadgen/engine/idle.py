"""Work that must not delay the wire: done in slices of a quarter of a millisecond, one a turn of the event loop."""

import asyncio
from collections.abc import Callable
from time import perf_counter_ns

SLICE_NS = 250_000


class IdleWork:
    """Runs jobs between reads.

    A job is a function that does a small piece of work, or says with False that there is none. All sockets that are
    readable are served between two slices, so a backlog costs the measuring path at most one slice of delay.
    """

    def __init__(self, jobs: tuple[Callable[[], bool], ...], *, poll_s: float = 0.05) -> None:
        self._jobs = jobs
        self._poll_s = poll_s
        self._wanted = asyncio.Event()
        self._closing = False

    def wake(self) -> None:
        """Says that there is work now; without it the jobs are asked every `poll_s`."""
        self._wanted.set()

    def finish(self) -> None:
        """`run` returns once no job has more to do."""
        self._closing = True
        self._wanted.set()

    async def run(self) -> None:
        """Works until `finish`."""
        while True:
            if self._slice():
                await asyncio.sleep(0)
                continue
            if self._closing:
                return
            self._wanted.clear()
            try:
                async with asyncio.timeout(self._poll_s):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    def _slice(self) -> bool:
        deadline = perf_counter_ns() + SLICE_NS
        for job in self._jobs:
            while job():
                if perf_counter_ns() >= deadline:
                    return True
        return False
