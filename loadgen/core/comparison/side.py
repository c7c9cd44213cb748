"""One run as a comparison sees it, whoever measured it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.metric_pair import LATENCIES, STATISTICS
from loadgen.core.comparison.workload import load_settings, requests_of, workload_of
from loadgen.core.metrics.summary import Summary
from loadgen.core.run import Load, LoadMode, RunManifest

LOADGEN = "loadgen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A run, or a level of a ladder.

    `values` are its metrics by name; `otherwise` says, of those that its tool defines otherwise, how. `workload` has
    the settings that are known; with `requests` they are all, and runs with the same word drew the same requests.
    `objectives`, `population` (of acceptance), `speculates` and `valid` are None where nobody tells. `cell` holds the
    requests one by one, where there are records.
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
    cell: Cell | None = None
    notes: tuple[str, ...] = ()

    @property
    def level(self) -> float | None:
        """Its concurrency or its rate; None for a replay."""
        return level_of(self.load)

    def __str__(self) -> str:
        return level_text(self.load)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What one argument of a comparison stands for: a run, or the levels of a ladder."""

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
        cell=cell,
        notes=("the run was interrupted or killed",) if summary.interrupted else (),
    )


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
