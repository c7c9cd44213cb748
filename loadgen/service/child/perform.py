"""Carries out an order as the command of that name does, and says what it came to."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from loadgen.adapters.store.files import Scrubber, document, replace_file
from loadgen.core.capacity.probe import Probe
from loadgen.core.errors import ExitCode, LoadgenError, StoreError
from loadgen.engine.live import LiveCounts
from loadgen.options.capacity import CapacityOptions
from loadgen.options.experiment import load_experiment
from loadgen.options.load import CommonOptions, RunOptions, SweepOptions
from loadgen.report.comparison import comparison_html
from loadgen.report.comparison.gates import failed_gates
from loadgen.service.child.against import held_against
from loadgen.service.child.headline import headline, headline_of_comparison, headline_of_search, headline_of_sweep
from loadgen.service.child.telling import Teller
from loadgen.service.child.view import View, view_of_experiment, view_of_run, view_of_search, view_of_sweep
from loadgen.service.child.watching import Follower
from loadgen.service.jobs.exposition import Encoded, encode_families
from loadgen.service.jobs.order import OUT, REPORT, SUMMARY, VIEW, Order, Outcome
from loadgen.wiring.capacity import exit_code_of, find_capacity
from loadgen.wiring.experiment import run_experiment
from loadgen.wiring.experiment_report import experiment_result
from loadgen.wiring.judge import Ending, ending_of
from loadgen.wiring.run import run_once
from loadgen.wiring.sweep import sweep_once

_EXPERIMENT = "experiment.yaml"
_CAPACITY = "loadgen_capacity_"
_SAYS_SOMETHING = (ExitCode.DONE, ExitCode.GATE_FAILED, ExitCode.INVALID_MEASUREMENT)
_INTERNAL = 70  # what sysexits.h has for it
Options = TypeVar("Options", bound=CommonOptions)


def perform(order: Order, teller: Teller) -> Outcome:
    """The outcome, also of what failed; nothing but KeyboardInterrupt is raised."""
    follower = Follower(teller, one_run=order.kind == "run")
    folder = Path(order.folder)
    work = _WORK[order.kind]
    try:
        with follower.following():
            outcome = asyncio.run(work(order, folder, follower, teller))
        if order.baseline is not None:
            outcome = held_against(order.baseline, outcome, folder, kind=order.kind)
    except LoadgenError as fault:
        said = str(fault).replace(f"{order.folder}/", "")
        return Outcome(exit_code=fault.exit_code, message=said, storage=isinstance(fault, StoreError))
    except Exception as fault:
        with suppress(OSError):  # a log on a disk that is full
            print(f"{type(fault).__name__}: {fault}", file=sys.stderr)  # noqa: T201 (the run's log)
        return Outcome(exit_code=_INTERNAL, message=f"internal error: {type(fault).__name__}")
    return outcome


async def _run(order: Order, folder: Path, follower: Follower, _teller: Teller) -> Outcome:
    options = _options(RunOptions, order, folder)
    finished = await run_once(options, display=follower.display, watch=follower.watch)
    summary = finished.analysis.summary
    _save(folder, summary, view_of_run(finished.analysis))
    ending = ending_of([finished], options)
    return _outcome(ending, finished.folder.path, valid=summary.verdict.valid, result=headline(summary))


async def _sweep(order: Order, folder: Path, follower: Follower, teller: Teller) -> Outcome:
    options = _options(SweepOptions, order, folder)
    ladder = await sweep_once(options, display=follower.display, watch=follower.watch)
    _finishing(teller)
    _save(folder, ladder.sweep, view_of_sweep(ladder.sweep))
    valid = all(run.analysis.summary.verdict.valid for run in ladder.levels)
    outcome = _outcome(ladder.ending(options), ladder.path, valid=valid, result=headline_of_sweep(ladder.sweep))
    return replace(outcome, message=None if ladder.fault is None else str(ladder.fault))


async def _capacity(order: Order, folder: Path, follower: Follower, teller: Teller) -> Outcome:
    options = _options(CapacityOptions, order, folder)

    def told(probe: Probe) -> None:
        teller.tell("probe", level=probe.level, verdict=probe.verdict.value, why=probe.why)

    found = await find_capacity(options, display=follower.display, told=told, watch=follower.watch)
    _finishing(teller)
    _save(folder, found.result, view_of_search(found.search, found.result))
    result = headline_of_search(found.result)
    code = exit_code_of(found)
    return Outcome(
        exit_code=code,
        artefact=found.path.name,
        valid=code is not ExitCode.INVALID_MEASUREMENT,
        gates=["not even the first level meets the objectives"] if code is ExitCode.GATE_FAILED else [],
        message=None if found.fault is None else str(found.fault),
        result=result,
        capacity=result | {"families": _of_capacity(follower)} if code in _SAYS_SOMETHING else None,
    )


async def _experiment(order: Order, folder: Path, follower: Follower, teller: Teller) -> Outcome:
    file = folder / _EXPERIMENT
    replace_file(file, json.dumps(order.options, indent=2).encode())
    finished = await run_experiment(
        load_experiment(file), out=folder / OUT, display=_ExperimentDisplay(follower, teller), watch=follower.watch
    )
    _finishing(teller)
    path = finished.folder.path
    if finished.interrupted or not finished.comparable:
        return Outcome(exit_code=finished.code, artefact=path.name, result={"remarks": list(finished.remarks)})
    result = await asyncio.to_thread(experiment_result, path)
    _save(folder, result, view_of_experiment(result.ladders))
    page = comparison_html(*result.ladders)
    replace_file(folder / REPORT, page.encode())
    replace_file(path / REPORT, page.encode())
    return Outcome(
        exit_code=finished.code_with(result),
        artefact=path.name,
        valid=all(comparison.valid for comparison in result.ladders),
        gates=[line for comparison in result.ladders for line in failed_gates(comparison)],
        result={
            "ladders": [headline_of_comparison(comparison) for comparison in result.ladders],
            "remarks": list(finished.remarks),
        },
    )


_WORK: Mapping[str, Callable[..., Coroutine[Any, Any, Outcome]]] = {
    "run": _run,
    "sweep": _sweep,
    "capacity": _capacity,
    "experiment": _experiment,
}


class _ExperimentDisplay:
    """See `wiring.sittings.ExperimentDisplay`."""

    def __init__(self, follower: Follower, teller: Teller) -> None:
        self._follower, self._teller = follower, teller

    def tell(self, line: str) -> None:
        self._teller.tell("note", text=line)

    def starting(self, title: str, waited_s: float, last_line: str | None, left_s: float | None) -> None:
        self._teller.tell("server_starting", title=title, waited_s=waited_s, left_s=left_s)

    @asynccontextmanager
    async def cell(self, live: LiveCounts, title: str, after_s: float | None) -> AsyncIterator[None]:
        async with self._follower.display(live, title, None):
            yield


def _of_capacity(follower: Follower) -> Encoded:
    """The metrics of the search, for the page that keeps them when this process is gone."""
    families = follower.watch.monitor.families()
    return encode_families(family for family in families if family.name.startswith(_CAPACITY))


def _options(model: type[Options], order: Order, folder: Path) -> Options:
    return model.model_validate({**order.options, "out": folder / OUT, "quiet": True})


def _finishing(teller: Teller) -> None:
    teller.tell("state", state="finishing")


def _save(folder: Path, summary: Any, view: View) -> None:
    scrubber = Scrubber()
    replace_file(folder / SUMMARY, document(summary, scrubber))
    replace_file(folder / VIEW, scrubber.encode(view))


def _outcome(ending: Ending, path: Path, *, valid: bool, result: dict[str, Any]) -> Outcome:
    return Outcome(
        exit_code=ending.code,
        artefact=path.name,
        valid=valid,
        gates=[gate.evidence for gate in ending.failed_gates],
        result=result,
    )
