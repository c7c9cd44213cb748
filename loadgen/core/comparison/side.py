"""One run as a comparison sees it, whoever measured it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.metric_pair import LATENCIES, METRICS, STATISTICS, is_share
from loadgen.core.comparison.workload import load_settings, requests_of, workload_of
from loadgen.core.metrics.summary import Summary
from loadgen.core.run import Load, LoadMode, RunManifest

LOADGEN = "loadgen"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run, a level of a ladder, or a level of an experiment's `arm` in one `repeat` of it or in several.

    `values` are its metrics by name; `otherwise` says, of those that its tool defines otherwise, how. `workload` has
    the settings that are known; with `requests` they are all, and runs with the same word drew the same requests.
    `objectives`, `population` (of acceptance), `speculates` and `valid` are None where nobody tells. `cells` hold the
    requests one by one, a cell a repeat, where there are records.
    """

    tool: str
    load: Load
    values: Mapping[str, float | None]
    otherwise: Mapping[str, str] = field(default_factory=dict)
    workload: Mapping[str, Any]
    requests: str | None = None
    objectives: Mapping[str, float] | None = None
    population: str | None = None
    speculates: bool | None = None
    valid: bool | None = None
    cells: tuple[Cell, ...] = ()
    arm: str | None = None
    repeat: int = 0
    notes: tuple[str, ...] = ()

    @property
    def level(self) -> float | None:
        """Its concurrency or its rate; None for a replay."""
        return level_of(self.load)

    def __str__(self) -> str:
        level = level_text(self.load)
        return level if self.arm is None else f"{level} of {self.arm}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What one argument of a comparison stands for: a run, the levels of a ladder, or the arms of an experiment."""

    name: str
    sides: tuple[Side, ...]


def side_of(summary: Summary, *, manifest: RunManifest | None = None, cell: Cell | None = None) -> Side:
    """A run of this tool: from its summary alone, or with what its folder tells beside it."""
    counts, speculation, slo = summary.requests, summary.speculation, summary.slo
    configured = summary.server.configuration
    values: dict[str, float | None] = {
        f"{name}.{statistic}": getattr(getattr(summary.latency, name), statistic)
        for name in LATENCIES
        for statistic in STATISTICS
    }
    values |= {
        "requests_per_s": summary.throughput.requests_per_s,
        "output_tokens_per_s": summary.throughput.output_tokens_per_s,
        "input_tokens_per_s": summary.throughput.input_tokens_per_s,
        "goodput_rps": summary.throughput.goodput_rps,
        "attainment_ratio": None if slo is None else slo.attainment_ratio,
        "error_ratio": (counts.failed + counts.dropped) / counts.planned if counts.planned else None,
        "acceptance_length": None if speculation is None else speculation.acceptance_length,
        "acceptance_ratio": None if speculation is None else speculation.acceptance_ratio,
        "tokens_per_step": None if speculation is None else speculation.tokens_per_step,
    }
    return Side(
        tool=LOADGEN,
        load=summary.load,
        values=values,
        workload=load_settings(summary.load) if manifest is None else workload_of(manifest),
        requests=None if manifest is None else requests_of(manifest),
        objectives={} if slo is None else slo.objectives,
        population=None if speculation is None else speculation.population,
        speculates=True if speculation is not None else None if configured is None else configured.speculates,
        valid=summary.verdict.valid,
        cells=() if cell is None else (cell,),
        notes=("the run was interrupted or killed",) if summary.interrupted else (),
    )


def side_of_repeats(repeats: Sequence[Side]) -> Side:
    """The runs of one arm of an experiment at one level, one a repeat, as one side; a single one is what it was.

    A metric is the geometric mean over the repeats, a share or a metric that was 0 the arithmetic one; one that a
    repeat lacks is lacking. The repeats sent the same requests if they agree on the word for them.
    """
    if len(repeats) == 1:
        return repeats[0]
    return replace(
        repeats[0],
        values={metric: _mean(metric, [side.values.get(metric) for side in repeats]) for metric in METRICS},
        requests=_common([side.requests for side in repeats]),
        objectives=_common([side.objectives for side in repeats]),
        population=_common([side.population for side in repeats]),
        speculates=_common([side.speculates for side in repeats]),
        valid=all(side.valid is not False for side in repeats),
        cells=tuple(chain.from_iterable(side.cells for side in repeats)),
        notes=tuple(dict.fromkeys(chain.from_iterable(side.notes for side in repeats))),
    )


def _mean(metric: str, values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    if is_share(metric) or min(known) <= 0:
        return math.fsum(known) / len(known)
    return math.exp(math.fsum(map(math.log, known)) / len(known))


def _common(values: Sequence[Value]) -> Value | None:
    return values[0] if all(value == values[0] for value in values) else None


def level_of(load: Load) -> float | None:
    """The concurrency of a closed loop, the rate of an open one; None for a replay."""
    match load.mode:
        case LoadMode.CONCURRENCY:
            return load.concurrency
        case LoadMode.RATE:
            return load.request_rate_rps
        case LoadMode.REPLAY:
            return None


def level_text(load: Load) -> str:
    """The level in words."""
    level = level_of(load)
    if load.mode is LoadMode.REPLAY:
        return "replay"
    told = "not told" if level is None else f"{level:.10g}"
    return f"concurrency {told}" if load.mode is LoadMode.CONCURRENCY else f"{told} requests/s"
