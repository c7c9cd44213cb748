"""Progress of an experiment on stderr: which server starts, which cell is measured, how long all of it will take."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from loadgen.cli.output import width_of
from loadgen.cli.writing import put, tell
from loadgen.core.units import duration_text
from loadgen.engine.live import LiveCounts

_MINUTE_S = 60.0
_REFRESH_S = 0.2
_SILENT_S = 5.0
_SHARE_THAT_TELLS = 0.02


class ExperimentProgress:
    """On a terminal one line that is redrawn. Elsewhere a line at the end of each cell, and one a minute of whatever
    takes longer.

    `silent` keeps also what people should know to itself.
    """

    def __init__(
        self,
        *,
        enabled: bool,
        silent: bool,
        minute_s: float = _MINUTE_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._enabled, self._silent, self._minute_s, self._now_s = enabled, silent, minute_s, now_s
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
            self._draw(said)
        elif self._enabled and waited_s // self._minute_s > self._minutes.get(title, 0):
            self._minutes[title] = waited_s // self._minute_s
            tell(said)

    @asynccontextmanager
    async def cell(self, live: LiveCounts, title: str, after_s: float | None) -> AsyncIterator[None]:
        """How far a run has come, and how long the whole experiment will take from there."""
        run = _Run(live, title, after_s, self._now_s)
        drawing = sys.stderr.isatty()
        showing = None
        if self._enabled:
            showing = asyncio.create_task(
                _again(lambda: self._draw(run.now()), _REFRESH_S)
                if drawing
                else _again(lambda: tell(run.now()), self._minute_s)
            )
        try:
            yield
        finally:
            self._wipe()
            if showing is not None:
                showing.cancel()
                if not drawing:
                    tell(run.at_its_end())

    def _draw(self, said: str) -> None:
        put(sys.stderr, f"\r\033[K{said[: width_of() - 1]}")
        self._drawn = True

    def _wipe(self) -> None:
        if self._drawn:
            put(sys.stderr, "\r\033[K")
            self._drawn = False


class _Run:
    """One run in words."""

    def __init__(self, live: LiveCounts, title: str, after_s: float | None, now_s: Callable[[], float]) -> None:
        self._live, self._title, self._after_s, self._now_s = live, title, after_s, now_s
        self._began_s = now_s()
        self._progressed = (0, self._began_s)

    def now(self) -> str:
        stopping = ("stopping",) if self._live.stopping else ()
        return " · ".join((self._title, *self._counts(), *stopping, *self._to_come()))

    def at_its_end(self) -> str:
        interrupted = self._live.stopping == "interrupt"
        took = f"{'interrupted after' if interrupted else 'in'} {duration_text(self._now_s() - self._began_s)}"
        left = () if interrupted or self._after_s is None else (_left(self._after_s),)
        return " · ".join((self._title, f"{', '.join(self._counts())} {took}", *left))

    def _counts(self) -> list[str]:
        live = self._live
        if live.measuring_since_ns is None and live.warmup_planned:
            return [f"warming up, {live.warmup_ended}/{live.warmup_planned}"]
        planned = "" if live.measured_planned is None else f"/{live.measured_planned}"
        words = [f"{live.measured_ended}{planned} requests"]
        return words + [
            f"{count} {word}" for count, word in ((live.failed, "failed"), (live.dropped, "dropped")) if count
        ]

    def _to_come(self) -> list[str]:
        live, now_s = self._live, self._now_s()
        done = live.ended + live.events
        if done != self._progressed[0]:
            self._progressed = (done, now_s)
        silent_s = now_s - self._progressed[1]
        if silent_s > _SILENT_S and live.in_flight:
            return [f"no answer for {duration_text(round(silent_s))}"]
        share = live.ended / live.planned if live.planned else 0.0
        if self._after_s is None or share < _SHARE_THAT_TELLS:
            return []
        return [_left((now_s - self._began_s) * (1 - share) / share + self._after_s)]


async def _again(say: Callable[[], None], pause_s: float) -> None:
    while True:
        await asyncio.sleep(pause_s)
        say()


def _left(left_s: float) -> str:
    return f"about {duration_text(round(left_s))} left"
