"""Follows the runs of one order and tells of them every second: progress, finished levels, metrics."""

import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from loadgen.adapters.prometheus.monitor import Monitor, WatchedRun
from loadgen.core.run import Load
from loadgen.engine.live import LiveCounts
from loadgen.service.child.headline import headline
from loadgen.service.child.interval import Intervals
from loadgen.service.child.telling import Teller
from loadgen.service.jobs.exposition import encode_families
from loadgen.wiring.session import Session
from loadgen.wiring.watch import Watch

_EVERY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedWatch(Watch):
    """A watch that keeps the runs which began, so that whoever looks finds their summaries."""

    began: list[tuple[str | None, WatchedRun]] = field(default_factory=list)

    def begin(self, session: Session, load: Load, *, origin_unix_ns: int) -> WatchedRun:
        """See `Watch.begin`."""
        run = Watch.begin(self, session, load, origin_unix_ns=origin_unix_ns)
        self.began.append((self.arm_name, run))
        return run


class Follower:
    """Tells of the run under way from a thread of its own, so that no telling takes a turn of the measuring loop."""

    def __init__(self, teller: Teller, *, one_run: bool) -> None:
        """`one_run`: there is nothing to measure behind the first run."""
        self._teller, self._one_run = teller, one_run
        self.watch = NotedWatch(monitor=Monitor())
        self._intervals = Intervals()
        self._told = 0
        self._at: tuple[LiveCounts, str] | None = None
        self._looked_s = time.monotonic()
        self._ending = threading.Event()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Until the block is left; what is left to tell is told then."""
        thread = threading.Thread(target=self._follow, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()
            self._look()

    @asynccontextmanager
    async def display(self, live: LiveCounts, title: str, duration_s: float | None) -> AsyncIterator[None]:
        """A run's load is under way; see `wiring.execute.Display`."""
        self._teller.tell("state", state="running")
        self._teller.tell("level_began", title=title)
        self._at = (live, title)
        try:
            yield
        finally:
            self._at = None
            if self._one_run:
                self._teller.tell("state", state="finishing")

    def _follow(self) -> None:
        while not self._ending.wait(_EVERY_S):
            self._look()

    def _look(self) -> None:
        now_s = time.monotonic()
        elapsed_s, self._looked_s = now_s - self._looked_s, now_s
        families = self.watch.monitor.families()
        interval = self._intervals.since_last(families, elapsed_s)
        if self._at is not None:
            live, title = self._at
            self._teller.tell("progress", title=title, **counts_of(live), **interval)
        self._tell_finished()
        self._teller.tell("metrics", families=encode_families(families))

    def _tell_finished(self) -> None:
        while self._told < len(self.watch.began):
            arm, run = self.watch.began[self._told]
            if run.summary is None:
                if self._told == len(self.watch.began) - 1:
                    return  # still under way
            else:
                self._teller.tell("level", arm=arm, **headline(run.summary))
            self._told += 1


def counts_of(live: LiveCounts) -> dict[str, Any]:
    """The counts for people: measured requests, and those of the warm-up while it lasts."""
    return {
        "planned": live.measured_planned,
        "ended": live.measured_ended,
        "warmup_planned": live.warmup_planned,
        "warmup_ended": live.warmup_ended,
        "warming_up": live.measuring_since_ns is None,
        "in_flight": live.in_flight,
        "failed": live.failed,
        "dropped": live.dropped,
        "stopping": live.stopping,
    }
