"""A ladder of runs against one server, each level in a run folder of its own."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from loadgen.adapters.store.run_folder import new_run_id
from loadgen.adapters.store.series_folder import SweepFolder
from loadgen.core.analysis.ladder import levels_asked, sweep_of
from loadgen.core.errors import TargetError
from loadgen.core.metrics.summary import Sweep
from loadgen.core.run import Load, LoadMode
from loadgen.options.load import SweepOptions
from loadgen.wiring.execute import Display, Finished, execute
from loadgen.wiring.interrupts import Interrupted, interruptible, signals
from loadgen.wiring.judge import Ending, ending_of
from loadgen.wiring.run import burstiness_of
from loadgen.wiring.session import Session, open_session
from loadgen.wiring.watch import Watch
from loadgen.wiring.workload import ReadProgress, default_requests, passes_needed

_FEWEST_WARMUP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSweep:
    """A ladder that is over, or as far as it came before it was interrupted or its target was gone.

    `fault`: why a level behind the first could not be begun, where that is so.
    """

    path: Path
    sweep: Sweep
    levels: tuple[Finished, ...]
    interrupted: bool
    fault: TargetError | None = None

    def ending(self, options: SweepOptions) -> Ending:
        """How a command that ran it ends."""
        return ending_of(self.levels, options, interrupted=self.interrupted, gone=self.fault is not None)


async def sweep_once(
    options: SweepOptions, *, display: Display, progress: ReadProgress | None = None, watch: Watch | None = None
) -> FinishedSweep:
    """Runs the ladder from its first level to its last; what a level left stays whatever happens to later ones.

    Raises LoadgenError when that cannot be done; a target that is gone behind the first level ends the ladder there.
    """
    async with open_session(options, progress=progress) as session:
        sweep_id = f"sweep-{new_run_id()}"
        stored = SweepFolder.create(options.out, sweep_id, secrets=session.secrets)
        if watch is not None:
            watch.tell("sweep", stored.path)
        finished: list[Finished] = []
        first_pass, interrupted, fault = 0, False, None
        with signals():
            for index, level in enumerate(levels_asked(session.stored_options())):
                if index and not await _settled(options.settle):
                    interrupted = True
                    break
                folder = stored.create_run(index + 1, level)
                load = _load(options, session, level, index)
                asked = options.warmup_requests
                warmup = default_warmup(load.concurrency) if asked is None else asked
                try:
                    level_run = await execute(
                        session,
                        load,
                        folder=folder,
                        warmup_requests=warmup,
                        display=display,
                        first_pass=first_pass,
                        watch=watch,
                    )
                except TargetError as gone:
                    if not finished:
                        raise
                    folder.drop()
                    fault = gone
                    break
                finished.append(level_run)
                first_pass += passes_needed(session.workload, load, warmup_requests=warmup)
                sweep = sweep_of(sweep_id, [(run.manifest, run.analysis.summary) for run in finished])
                stored.save(sweep)
                interrupted = finished[-1].end.interrupted
                if interrupted or finished[-1].end.ended_by == "unreachable":
                    break
        return FinishedSweep(
            path=stored.path, sweep=sweep, levels=tuple(finished), interrupted=interrupted, fault=fault
        )


async def _settled(settle_s: float) -> bool:
    """Waits between two levels; False when somebody asked to stop, then or while the last level was being saved."""
    try:
        await interruptible(asyncio.sleep(settle_s))
    except Interrupted:
        return False
    return True


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


def default_warmup(concurrency: int | None) -> int:
    """One request for each slot, so that every level starts on a server that is busy with it already."""
    return max(_FEWEST_WARMUP, concurrency or 0)
