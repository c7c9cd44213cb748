"""What a ladder looks like while it runs: the counts of the level under way, and each level once it is measured."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from loadgen.adapters.prometheus.monitor import Monitor, WatchedRun
from loadgen.adapters.prometheus.series import Labels
from loadgen.core.metrics.summary import Summary
from loadgen.core.metrics.totals import Totals
from loadgen.core.run import Load
from loadgen.engine.live import LiveCounts
from loadgen.locustio.conductor.counts import counted, since
from loadgen.locustio.conductor.telling import Tell

_STEP_S = 0.5


class Follower(Monitor):
    """A monitor that also tells of each run as it goes on, and hands on what it came to.

    `out` is the folder of all results, in which those of this ladder have one of their own.
    """

    def __init__(self, tell: Tell, measured: Callable[[Summary], None], *, out: Path) -> None:
        super().__init__()
        self._tell, self._measured, self._out = tell, measured, out
        self._told: dict[str, Any] = {}
        self._watched: WatchedRun | None = None

    def tell(self, info: Mapping[str, str]) -> None:
        """What is under way, and to people where it is kept: they are to find it whatever ends this process."""
        super().tell(info)
        self._tell("saving", path=str((self._out / info["run_id"]).resolve()))

    def begin(self, labels: Labels, load: Load, *, origin_unix_ns: int) -> WatchedRun:
        """A run begins; what the one before it came to is told first."""
        self.catch_up()
        self._watched = super().begin(labels, load, origin_unix_ns=origin_unix_ns)
        self._told = counted(self._totals[labels])
        return self._watched

    def catch_up(self) -> None:
        """Tells of a run that is analysed by now and was not when it was looked at last."""
        if self._watched is not None and self._watched.summary is not None:
            summary, self._watched = self._watched.summary, None
            self._measured(summary)

    @asynccontextmanager
    async def display(self, live: LiveCounts, title: str, duration_s: float | None) -> AsyncIterator[None]:
        """Tells of the run until it is left, the last of it included."""
        users = None if self._run is None else self._run.load.concurrency
        self._tell("level", title=title, duration_s=duration_s, users=users)
        telling = asyncio.create_task(self._again(live))
        try:
            yield
        finally:
            telling.cancel()
            self._progress(live)

    async def _again(self, live: LiveCounts) -> None:
        while True:
            self._progress(live)
            await asyncio.sleep(_STEP_S)

    def _progress(self, live: LiveCounts) -> None:
        totals = self._now()
        self._tell(
            "progress",
            warming_up=live.measuring_since_ns is None and bool(live.warmup_planned),
            planned=live.measured_planned,
            ended=live.measured_ended,
            in_flight=live.in_flight,
            failed=live.failed,
            dropped=live.dropped,
            stopping=live.stopping,
            counts=since(self._told, totals),
        )
        self._told = totals

    def _now(self) -> dict[str, Any]:
        self.take_in()
        with self._lock:
            run = self._run
            return counted(self._totals[run.labels] if run is not None else Totals())
