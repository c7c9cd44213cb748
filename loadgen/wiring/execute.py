"""One run from its parts to its folder: drive, record, analyse, save."""

import asyncio
import os
import platform
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import httptools
import msgspec

from loadgen import __version__
from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.analysis.analyse import analyse
from loadgen.core.metrics.summary import Analysis
from loadgen.core.run import Load, LoadMode, RunManifest
from loadgen.engine.live import LiveCounts
from loadgen.engine.runner import RunEnd
from loadgen.wiring.driver import Asked, Driver, driver_of
from loadgen.wiring.garbage import few_collections
from loadgen.wiring.interrupts import interrupts
from loadgen.wiring.probe import probing
from loadgen.wiring.session import Session
from loadgen.wiring.watch import Watch
from loadgen.wiring.workload import level_plan

_LOOK_S = 0.2


class Display(Protocol):
    """Shows a run while it is under way."""

    def __call__(self, live: LiveCounts, title: str, duration_s: float | None) -> AbstractAsyncContextManager[object]:
        """A context in which the run's live counts are followed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run that is over: where it is, what it came to, how it ended."""

    folder: RunFolder
    manifest: RunManifest
    analysis: Analysis
    end: RunEnd


async def execute(
    session: Session,
    load: Load,
    *,
    folder: RunFolder,
    warmup_requests: int,
    display: Display,
    first_pass: int = 0,
    run_id: str | None = None,
    notes: Sequence[str] = (),
    gone: Callable[[], bool] | None = None,
    watch: Watch | None = None,
) -> Finished:
    """Runs one load against the session's target and leaves a complete run folder.

    `run_id` is the folder's name unless given. `notes` are for the manifest. The run ends as with a server that cannot
    be reached once `gone` says that there is none. `watch` is told of the run as it goes on.
    Raises LoadgenError for our own faults; whatever was measured until then is on the disk.
    """
    clock = MonotonicClock()
    run_id = folder.path.name if run_id is None else run_id
    template = session.run_template()
    plan = level_plan(
        session.workload,
        load,
        template,
        run_id=run_id,
        warmup_requests=warmup_requests,
        first_pass=first_pass,
    )
    manifest = RunManifest(
        run_id=run_id,
        name=session.options.name,
        labels=session.options.label,
        started_at=datetime.fromtimestamp(clock.origin_unix_ns / 1e9, tz=UTC).isoformat(timespec="milliseconds"),
        origin_unix_ns=clock.origin_unix_ns,
        target=session.target,
        load=load,
        options=session.stored_options(),
        data=plan.data,
        slo=session.slo,
        client_version=__version__,
        host=host_facts(),
        server=session.server_facts,
        first_request=plan.first_request,
        notes=(*session.notes, *notes),
    )
    folder.save_manifest(manifest)
    watched = None if watch is None else watch.begin(session, load, origin_unix_ns=clock.origin_unix_ns)
    asked = Asked(
        session=session,
        load=load,
        template=template,
        run_id=run_id,
        warmup_requests=warmup_requests,
        first_pass=first_pass,
    )
    try:
        await session.reset_cache()
        async with probing(session.pages, session.facts, session.options, folder=folder, clock=clock) as probe:
            with driver_of(asked, plan, folder=folder, clock=clock, probe=probe, watched=watched) as run:
                if watched is not None:
                    watched.live = run.live
                with few_collections(), interrupts(run.stop, run.abort):
                    async with display(run.live, load_title(load), load.duration_s), _watched(run, gone):
                        end = await run.execute()
    finally:
        clock.close()
        if watched is not None:
            watched.live = None
    manifest = replace(
        manifest,
        planned=end.requests,
        window=end.window,
        exhausted_ns=end.exhausted_ns,
        client=end.client,
        interrupted=end.interrupted,
        ended_by=end.ended_by,
        ended_unix_ns=time.time_ns(),
        notes=(*manifest.notes, *_notes(end)),
    )
    folder.save_manifest(manifest)
    analysis = await asyncio.to_thread(analyse, folder.records, manifest, folder.scrapes)
    folder.save_summary(analysis.summary)
    if watched is not None:
        watched.finished(analysis.summary)
    return Finished(folder=folder, manifest=manifest, analysis=analysis, end=end)


def _notes(end: RunEnd) -> tuple[str, ...]:
    if not end.late_preparations:
        return ()
    return (f"{end.late_preparations} requests were not prepared when they were wanted; the data is read too slowly",)


def load_title(load: Load) -> str:
    """A load in few words, for whoever watches it."""
    match load.mode:
        case LoadMode.CONCURRENCY:
            return f"concurrency {load.concurrency}"
        case LoadMode.RATE:
            return f"{load.request_rate_rps:g} requests/s"
        case LoadMode.REPLAY:
            return "replay" if load.speed == 1 else f"replay at {load.speed:g}x"


@asynccontextmanager
async def _watched(run: Driver, gone: Callable[[], bool] | None) -> AsyncIterator[None]:
    """Gives the run up when its server is known to be gone, sooner than by requests that cannot connect."""

    async def watch(gone: Callable[[], bool]) -> None:
        while not gone():  # noqa: ASYNC110 (nothing tells when; it has to be asked)
            await asyncio.sleep(_LOOK_S)
        run.stop("unreachable")

    if gone is None:
        yield
        return
    watching = asyncio.create_task(watch(gone))
    try:
        yield
    finally:
        watching.cancel()


def host_facts() -> dict[str, Any]:
    """The machine that the load comes from, and what it is made with."""
    return {
        "system": platform.platform(),
        "machine": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": sys.version.split()[0],
        "libraries": {module.__name__: module.__version__ for module in (httptools, msgspec)},
    }
