"""Progress of an experiment on stderr: which server starts, which cell is measured, how long all of it will take."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from loadgen.cli.output import width_of
from loadgen.cli.progress import RunProgress
from loadgen.cli.writing import put, tell
from loadgen.core.units import duration_text
from loadgen.engine.live import LiveCounts

_MINUTE_S = 60.0


class ExperimentProgress:
    """On a terminal one line that is redrawn. Elsewhere a line at the end of each cell, and one a minute of whatever
    takes longer.

    `silent` keeps also what people should know to itself.
    """

    def __init__(self, *, enabled: bool, silent: bool, minute_s: float = _MINUTE_S) -> None:
        self._enabled, self._silent, self._minute_s = enabled, silent, minute_s
        self._drawn = False
        self._minutes: dict[str, float] = {}

    def tell(self, line: str) -> None:
        """A line of its own."""
        if not self._silent:
            self._wipe()
            tell(f"loadgen: {line}")

    def starting(self, title: str, waited_s: float, last_line: str | None, left_s: float | None) -> None:
        """Which server is waited for, and what its log says."""
        left = "" if left_s is None else f" · {_left(max(0.0, left_s - waited_s))}"
        said = f"{title} · starting for {duration_text(round(waited_s))}{left} · {last_line or ''}"
        if self._enabled and sys.stderr.isatty():
            put(sys.stderr, f"\r\033[K{said[: width_of() - 1]}")
            self._drawn = True
        elif self._enabled and waited_s // self._minute_s > self._minutes.get(title, 0):
            self._minutes[title] = waited_s // self._minute_s
            tell(said)

    def cell(self, live: LiveCounts, title: str, after_s: float | None) -> AbstractAsyncContextManager[object]:
        """The progress of a run, with the time that is left for the whole experiment."""
        self._wipe()
        if self._enabled and not sys.stderr.isatty():
            return self._in_lines(live, title, after_s)
        return RunProgress(live, title, None, after_s=after_s, enabled=self._enabled)

    @asynccontextmanager
    async def _in_lines(self, live: LiveCounts, title: str, after_s: float | None) -> AsyncIterator[None]:
        began_s = time.monotonic()

        def say(left_s: float | None) -> None:
            planned = live.measured_planned
            counts = [f"{live.measured_ended}{'' if planned is None else f' of {planned}'} requests"]
            counts += [
                f"{count} {word}" for count, word in ((live.failed, "failed"), (live.dropped, "dropped")) if count
            ]
            left = "" if left_s is None else f"; {_left(left_s)}"
            tell(f"{title}: {', '.join(counts)} in {duration_text(time.monotonic() - began_s)}{left}")

        saying = asyncio.create_task(self._each_minute(lambda: say(None)))
        try:
            yield
        finally:
            saying.cancel()
            say(after_s)

    async def _each_minute(self, say: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._minute_s)
            say()

    def _wipe(self) -> None:
        if self._drawn:
            put(sys.stderr, "\r\033[K")
            self._drawn = False


def _left(left_s: float) -> str:
    return f"about {duration_text(round(left_s))} left"
