"""Progress of a run on a terminal's stderr: what is done, what is in flight, how long it will take.

Requests are those that are measured; those of the warm-up are counted apart, before them.
"""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from loadgen.cli.writing import leave_alone
from loadgen.core.units import duration_text
from loadgen.engine.live import LiveCounts

_REFRESH_S = 0.2
_SILENT_S = 5.0


class PatientConsole(Console):
    """A console whose reader may go away: the run that it shows goes on."""

    def on_broken_pipe(self) -> None:
        """Nothing more is shown."""
        self.quiet = True
        leave_alone(self.file)


class RunProgress:
    """Follows one run's live counts until left. Draws only on a terminal; elsewhere it prints one line at the end."""

    def __init__(
        self,
        live: LiveCounts,
        title: str,
        duration_s: float | None,
        *,
        enabled: bool = True,
        console: Console | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._live, self._title, self._duration_s = live, title, duration_s
        self._console = console or PatientConsole(stderr=True)
        self._enabled = enabled
        self._now_s = now_s
        self._started = now_s()
        self._progressed = (0, self._started)
        self._drawing: asyncio.Task[None] | None = None
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            transient=True,
            disable=not (enabled and self._console.is_terminal),
            auto_refresh=False,
        )

    async def __aenter__(self) -> Self:
        self._progress.start()
        self._drawing = asyncio.create_task(self._draw())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawing is not None:
            self._drawing.cancel()
        self._progress.stop()
        if self._enabled and not self._console.is_terminal:
            self._console.print(Text(f"{self._title}: {self._counts()}, {self._elapsed()}"), soft_wrap=True)

    async def _draw(self) -> None:
        task = self._progress.add_task(self._title, total=1.0, counts="", left="")
        while True:
            share = self._share()
            self._progress.update(task, completed=share or 0.0, total=1.0 if share is not None else None)
            self._progress.update(task, counts=self._counts(), left=self._left(share))
            self._progress.refresh()
            await asyncio.sleep(_REFRESH_S)

    def _share(self) -> float | None:
        live = self._live
        if live.planned:
            return min(1.0, live.ended / live.planned)
        if self._duration_s and live.measuring_since_ns is not None and live.last_progress_ns is not None:
            return min(1.0, max(0, live.last_progress_ns - live.measuring_since_ns) / (self._duration_s * 1e9))
        return None

    def _counts(self) -> str:
        live = self._live
        if live.measuring_since_ns is None and (live.warmup_planned or live.warmup_ended):
            words = [f"warming up, {_of(live.warmup_ended, live.warmup_planned)} requests"]
        else:
            words = [f"{_of(live.measured_ended, live.measured_planned)} requests"]
        words.append(f"{live.in_flight} in flight")
        words += [f"{n} {word}" for n, word in ((live.failed, "failed"), (live.dropped, "dropped")) if n]
        if live.stopping:
            words.append("finishing" if live.stopping == "duration" else "stopping")
        return ", ".join(words)

    def _left(self, share: float | None) -> str:
        now = self._now_s()
        done = self._live.ended + self._live.events
        if done != self._progressed[0]:
            self._progressed = (done, now)
        silent_s = now - self._progressed[1]
        if silent_s > _SILENT_S and self._live.in_flight:
            return f"no answer for {duration_text(silent_s)}"
        if share is None or share < 0.02:
            return ""
        left_s = (now - self._started) * (1 - share) / share
        return f"{duration_text(left_s)} left"

    def _elapsed(self) -> str:
        return duration_text(self._now_s() - self._started)


def _of(done: int, planned: int | None) -> str:
    return f"{done}/{planned}" if planned else str(done)
