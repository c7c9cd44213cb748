"""One run from options to result."""

from loadgen.adapters.store.run_folder import RunFolder, new_run_id
from loadgen.core.run import Load, LoadMode
from loadgen.options.load import RunOptions
from loadgen.wiring.execute import Display, Finished, execute
from loadgen.wiring.interrupts import signals
from loadgen.wiring.session import open_session
from loadgen.wiring.watch import Watch
from loadgen.wiring.workload import ReadProgress, default_requests


async def run_once(
    options: RunOptions, *, display: Display, progress: ReadProgress | None = None, watch: Watch | None = None
) -> Finished:
    """Runs what the options say and leaves a run folder. Raises LoadgenError when that cannot be done."""
    async with open_session(options, progress=progress) as session:
        load = _load(options, session.seed, default_requests(session.workload, options, options.concurrency))
        folder = RunFolder.create(options.out, new_run_id(), secrets=session.secrets)
        if watch is not None:
            watch.tell("run", folder.path)
        with signals():
            return await execute(
                session,
                load,
                folder=folder,
                warmup_requests=options.warmup_requests or 0,
                display=display,
                watch=watch,
            )


def _load(options: RunOptions, seed: int, num_requests: int | None) -> Load:
    if options.replay:
        mode = LoadMode.REPLAY
    elif options.request_rate is not None:
        mode = LoadMode.RATE
    else:
        mode = LoadMode.CONCURRENCY
    return Load(
        mode=mode,
        concurrency=(options.concurrency or 1) if mode is LoadMode.CONCURRENCY else None,
        request_rate_rps=options.request_rate,
        burstiness=burstiness_of(options.burstiness) if mode is LoadMode.RATE else None,
        max_concurrency=options.max_concurrency,
        speed=(options.speed or 1.0) if mode is LoadMode.REPLAY else None,
        num_requests=num_requests,
        duration_s=options.duration,
        seed=seed,
    )


def burstiness_of(asked: float | None) -> float | None:
    """The gamma shape to store: 1 (Poisson) unless asked otherwise, None for infinity, which JSON has no word for."""
    if asked is None:
        return 1.0
    return None if asked == float("inf") else asked
