"""A ladder of runs against one server, each level in a run folder of its own."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from loadgen.adapters.store.run_folder import new_run_id
from loadgen.adapters.store.sweep_folder import create_level, create_sweep, save_sweep
from loadgen.core.analysis.ladder import knee_of
from loadgen.core.metrics.summary import Sweep, SweepLevel
from loadgen.core.run import Load, LoadMode
from loadgen.options.load import SweepOptions
from loadgen.wiring.execute import Display, Finished, execute
from loadgen.wiring.run import burstiness_of
from loadgen.wiring.session import Session, open_session
from loadgen.wiring.workload import ReadProgress, default_requests, passes_needed

DEFAULT_LADDER = (1, 2, 4, 8, 16)
_FEWEST_WARMUP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSweep:
    """A ladder that is over, or as far as it came before it was interrupted."""

    path: Path
    sweep: Sweep
    levels: tuple[Finished, ...]


async def sweep_once(options: SweepOptions, *, display: Display, progress: ReadProgress | None = None) -> FinishedSweep:
    """Runs the ladder from its first level to its last; what a level left stays whatever happens to later ones."""
    async with open_session(options, progress=progress) as session:
        sweep_id = new_run_id()
        path = create_sweep(options.out, sweep_id)
        variable = "request_rate_rps" if options.request_rate is not None else "concurrency"
        ladder = options.request_rate or options.concurrency or DEFAULT_LADDER
        finished: list[Finished] = []
        first_pass = 0
        for index, level in enumerate(ladder):
            if index:
                await asyncio.sleep(options.settle)
            folder = create_level(path, index + 1, level, secrets=session.destination.secrets)
            load = _load(options, session, level, index)
            warmup = _warmup(options, load)
            finished.append(
                await execute(
                    session, load, folder=folder, warmup_requests=warmup, display=display, first_pass=first_pass
                )
            )
            first_pass += passes_needed(session.workload, load, warmup_requests=warmup)
            sweep = _sweep(sweep_id, options, variable, finished)
            save_sweep(path, sweep, secrets=session.destination.secrets)
            if finished[-1].end.interrupted:
                break
        return FinishedSweep(path=path, sweep=sweep, levels=tuple(finished))


def _load(options: SweepOptions, session: Session, level: float, index: int) -> Load:
    closed = options.request_rate is None
    concurrency = int(level) if closed else None
    return Load(
        mode=LoadMode.CONCURRENCY if closed else LoadMode.RATE,
        concurrency=concurrency,
        request_rate_rps=None if closed else level,
        burstiness=None if closed else burstiness_of(options.burstiness),
        max_concurrency=options.max_concurrency,
        num_requests=default_requests(session.workload, options, concurrency),
        duration_s=options.duration,
        seed=(session.seed + index) % 2**63,
    )


def _warmup(options: SweepOptions, load: Load) -> int:
    """One request for each slot, so that every level starts on a server that is busy with it already."""
    if options.warmup_requests is not None:
        return options.warmup_requests
    return max(_FEWEST_WARMUP, load.concurrency or 0)


def _sweep(sweep_id: str, options: SweepOptions, variable: str, finished: list[Finished]) -> Sweep:
    levels = tuple(SweepLevel(level=_level(run), summary=run.analysis.summary) for run in finished)
    if options.slo_attainment is not None:
        knee = knee_of(levels, variable, attainment_ratio=options.slo_attainment)
    else:
        knee = knee_of(levels, variable)
    return Sweep(sweep_id=sweep_id, name=options.name, variable=variable, levels=levels, knee=knee)


def _level(run: Finished) -> float:
    load = run.manifest.load
    level = load.concurrency if load.concurrency is not None else load.request_rate_rps
    assert level is not None
    return level
