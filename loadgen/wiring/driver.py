"""Who drives a run: this process itself, or workers that it leads."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.prometheus.monitor import WatchedRun
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.request import RequestTemplate
from loadgen.core.run import Load
from loadgen.core.schedule.share import Share
from loadgen.engine.live import LiveCounts
from loadgen.engine.ports import ServerProbe
from loadgen.engine.runner import Run, RunEnd
from loadgen.wiring.session import Session
from loadgen.wiring.settings import settings_of
from loadgen.wiring.transport import transport_of
from loadgen.wiring.workers.crew import Crew, crew_of
from loadgen.wiring.workers.messages import Axis, Job, Ready, command_of, options_in_job
from loadgen.wiring.workers.team import Team
from loadgen.wiring.workload import LevelPlan


class Driver(Protocol):
    """A run that can be executed once."""

    @property
    def live(self) -> LiveCounts:
        """Its counts so far."""
        ...

    def stop(self, reason: str = "interrupt") -> None:
        """Ends it in order. The first reason counts."""
        ...

    def abort(self) -> None:
        """Ends it at once."""
        ...

    async def execute(self) -> RunEnd:
        """Runs to the end. Raises LoadgenError for a fault of ours, after closing everything."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one run is to send, and to whom."""

    session: Session
    load: Load
    template: RequestTemplate
    run_id: str
    warmup_requests: int
    first_pass: int

    def with_slots(self, processes: int) -> int:
        """How many of so many drive it: all, but none without a slot."""
        slots = self.load.concurrency or self.load.max_concurrency
        return processes if slots is None else min(processes, slots)

    def job(self, share: Share, *, axis: Axis, records: str, totals: bool) -> Job:
        """What the worker of that share is to do. `records` is the file that it writes."""
        return Job(
            command=command_of(self.session.options),
            options=options_in_job(self.session.options),
            seed=self.session.seed,
            load=self.load,
            share=share,
            run_id=self.run_id,
            template=self.template,
            warmup_requests=self.warmup_requests,
            first_pass=self.first_pass,
            axis=axis,
            records=records,
            secrets=self.session.secrets,
            totals=totals,
        )


@contextmanager
def driver_of(
    asked: Asked,
    plan: LevelPlan,
    *,
    folder: RunFolder,
    clock: MonotonicClock,
    probe: ServerProbe | None,
    watched: WatchedRun | None,
) -> Iterator[Driver]:
    """The driver of a run, whose records are in the folder once the block is left."""
    crew = crew_of(asked.with_slots(asked.session.options.workers))
    if crew is not None:
        yield _team(asked, crew, folder=folder, clock=clock, probe=probe, watched=watched)
        return
    session, sink = asked.session, folder.record_writer()
    settings = settings_of(
        session.options, asked.load, asked.template, warmup_requests=asked.warmup_requests, secrets=session.secrets
    )
    transport = transport_of(session.options, session.destination, clock, asked.load.mode)
    taking = sink if watched is None else watched.beside(sink)
    try:
        yield Run(plan.conversations, settings, clock=clock, transport=transport, sink=taking, probe=probe)
    finally:
        sink.close()


def _team(
    asked: Asked,
    crew: Crew,
    *,
    folder: RunFolder,
    clock: MonotonicClock,
    probe: ServerProbe | None,
    watched: WatchedRun | None,
) -> Team:
    axis = Axis(origin_unix_ns=clock.origin_unix_ns, origin_monotonic_ns=clock.origin_monotonic_ns)
    workers = asked.with_slots(crew.size)
    jobs = [
        asked.job(
            Share(index=index, count=workers),
            axis=axis,
            records=str(folder.part_path(index).resolve()),
            totals=watched is not None,
        )
        for index in range(workers)
    ]
    return Team(
        jobs,
        crew=crew,
        folder=folder,
        data=Ready.over(asked.session.workload),
        clock=clock,
        probe=probe,
        counted=None if watched is None else watched.count,
    )
