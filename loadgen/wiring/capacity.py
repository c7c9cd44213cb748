"""A search for the highest load that meets the objectives, each probe in a run folder of its own."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadgen.adapters.store.run_folder import new_run_id
from loadgen.adapters.store.series_folder import SearchFolder
from loadgen.core.capacity.observed import run_of
from loadgen.core.capacity.probe import Probe, Run, Verdict
from loadgen.core.capacity.result import CapacityResult, replayed
from loadgen.core.capacity.search import Search, Step, bracket_of, next_step, requests_needed, search_of
from loadgen.core.errors import ExitCode, TargetError
from loadgen.core.run import Load, LoadMode
from loadgen.options.capacity import CapacityOptions
from loadgen.wiring.cooldown import cool_down
from loadgen.wiring.execute import Display, Finished, execute
from loadgen.wiring.interrupts import Interrupted, interruptible, signals
from loadgen.wiring.run import burstiness_of
from loadgen.wiring.session import Session, open_session
from loadgen.wiring.watch import Watch
from loadgen.wiring.workload import ReadProgress, passes_needed

_WARMUP_TURNOVERS = 2
_FEWEST_WARMUP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSearch:
    """A search that is over, or as far as it came before it was interrupted or its target was gone.

    `fault`: why a probe behind the first could not be begun, where that is so.
    """

    path: Path
    search: Search
    result: CapacityResult
    runs: tuple[Finished, ...]
    interrupted: bool
    fault: TargetError | None = None


async def find_capacity(
    options: CapacityOptions,
    *,
    display: Display,
    told: Callable[[Probe], None],
    progress: ReadProgress | None = None,
    watch: Watch | None = None,
) -> FinishedSearch:
    """Searches; `told` gets each probe once it has ended. What a probe left stays whatever happens to later ones.

    Raises LoadgenError when that cannot be done; a target that is gone behind the first probe ends the search there.
    """
    async with open_session(options, progress=progress) as session:
        stored = SearchFolder.create(options.out, f"capacity-{new_run_id()}", secrets=session.secrets)
        if watch is not None:
            watch.tell("capacity", stored.path)
        search = search_of(session.stored_options())
        finished: list[Finished] = []
        seen: list[tuple[float, Run]] = []
        result, first_pass, fault = replayed(search, (), objectives=session.slo), 0, None
        with signals() as heard:
            while not heard.asked and (step := next_step(search, result.probes)) is not None:
                notes: tuple[str, ...] = ()
                if seen:
                    try:
                        notes = await interruptible(cool_down(session.pages, session.facts, pause_s=options.settle))
                    except Interrupted:
                        break
                in_flight = _in_flight(search, step.level, result.probes)
                load = _load(options, session, search, step, in_flight=in_flight, index=len(seen))
                warmup = _warmup(options, in_flight)
                folder = stored.create_run(len(seen) + 1, step.level)
                try:
                    done = await execute(
                        session,
                        load,
                        folder=folder,
                        warmup_requests=warmup,
                        display=display,
                        first_pass=first_pass,
                        notes=notes,
                        watch=watch,
                    )
                except TargetError as gone:
                    if not finished:
                        raise
                    folder.drop()
                    fault = gone
                    break
                finished.append(done)
                first_pass += passes_needed(session.workload, load, warmup_requests=warmup)
                run = await asyncio.to_thread(
                    run_of,
                    done.folder.records(),
                    done.manifest,
                    done.analysis.summary,
                    target_ratio=search.rule.attainment_ratio,
                )
                seen.append((step.level, run))
                result = replayed(search, seen, objectives=session.slo, gpus=options.gpus)
                stored.save(result)
                told(result.probes[-1])
        if watch is not None:
            watch.searched(session, search, result)
        return FinishedSearch(
            path=stored.path,
            search=search,
            result=result,
            runs=tuple(finished),
            interrupted=heard.asked,
            fault=fault,
        )


def exit_code_of(found: FinishedSearch) -> ExitCode:
    """Interrupted before target failed, before invalid, before no capacity."""
    if found.interrupted:
        return ExitCode.INTERRUPTED
    last = found.result.probes[-1]
    gone = found.fault is not None or last.verdict is Verdict.CUT_SHORT
    if gone or not any(probe.summary.requests.completed for probe in found.result.probes):
        return ExitCode.TARGET_FAILED
    if last.verdict is Verdict.INVALID:
        return ExitCode.INVALID_MEASUREMENT
    return ExitCode.GATE_FAILED if found.result.capacity is None else ExitCode.DONE


def _in_flight(search: Search, level: float, probes: Sequence[Probe]) -> float:
    """Requests in flight at a level: itself, or by Little's law with the latency at the highest level that passed."""
    passed = bracket_of(probes).passed
    latency = None if passed is None else passed.summary.latency["e2el_s"].mean
    return level if search.whole else level * (latency or 0.0)


def _warmup(options: CapacityOptions, in_flight: float) -> int:
    asked = options.warmup_requests
    return max(_FEWEST_WARMUP, math.ceil(_WARMUP_TURNOVERS * in_flight)) if asked is None else asked


def _gap_variation(burstiness: float | None) -> float:
    """Standard deviation over mean of gamma gaps of that shape, Poisson's by default."""
    return 1.0 if burstiness is None else burstiness**-0.5


def _load(
    options: CapacityOptions, session: Session, search: Search, step: Step, *, in_flight: float, index: int
) -> Load:
    requests = options.num_requests
    if requests is None and options.duration is None:
        variation = 0.0 if search.whole else _gap_variation(options.burstiness)
        requests = requests_needed(search, in_flight, gap_variation=variation)
    return Load(
        mode=LoadMode.CONCURRENCY if search.whole else LoadMode.RATE,
        concurrency=int(step.level) if search.whole else None,
        request_rate_rps=None if search.whole else step.level,
        burstiness=None if search.whole else burstiness_of(options.burstiness),
        max_concurrency=options.max_concurrency,
        num_requests=None if requests is None else requests * step.length,
        duration_s=None if options.duration is None else options.duration * step.length,
        seed=(session.seed + index) % 2**63,
    )
