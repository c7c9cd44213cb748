"""Gates: limits that decide over the exit code, apart from whether the measurement may be believed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.core.metrics.summary import Summary
from loadgen.core.run import LoadMode


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedGate:
    """A limit that was not kept. `value` is None when nothing was due; `evidence` says it in words."""

    name: str
    limit: float
    value: float | None
    evidence: str


def failed_gates(summaries: Sequence[Summary], options: Mapping[str, Any]) -> tuple[FailedGate, ...]:
    """The gates that a run, or all levels of a ladder, did not keep.

    `options` are the resolved options of the manifest: `slo_attainment` fails when no level attains it, since the
    levels beyond the capacity cannot; `max_error_ratio` fails when any level exceeds it.
    """
    if not summaries:
        return ()
    gates = (
        _attainment(summaries, options.get("slo_attainment")),
        _errors(summaries, options.get("max_error_ratio")),
    )
    return tuple(gate for gate in gates if gate is not None)


def _attainment(summaries: Sequence[Summary], limit: object) -> FailedGate | None:
    judged = [summary for summary in summaries if summary.slo is not None]
    if not isinstance(limit, int | float) or not judged:
        return None
    best = max(judged, key=lambda summary: _attained(summary) or 0.0)
    value, slo = _attained(best), best.slo
    if slo is None or (value is not None and value >= limit):
        return None
    if value is None:
        evidence = "SLO attainment has no value, since no request was due"
    else:
        share, counts = _share(value, limit), f"{slo.good} good of {slo.due} due"
        evidence = f"SLO attainment {share} is below {_limit(limit)} ({counts})"
        if len(summaries) > 1:
            evidence = f"SLO attainment is below {_limit(limit)} at every level, {share} at best"
            evidence += f" ({_level(best)}: {counts})"
    return FailedGate(name="slo_attainment", limit=limit, value=value, evidence=evidence)


def _attained(summary: Summary) -> float | None:
    return None if summary.slo is None else summary.slo.attainment_ratio


def _errors(summaries: Sequence[Summary], limit: object) -> FailedGate | None:
    worst = max(summaries, key=_error_ratio)
    value, counts = _error_ratio(worst), worst.requests
    if not isinstance(limit, int | float) or value <= limit:
        return None
    where = f"{_level(worst)}: " if len(summaries) > 1 else ""
    evidence = (
        f"share of failed or dropped requests {_share(value, limit)} is above {_limit(limit)}"
        f" ({where}{counts.failed + counts.dropped} of {counts.planned})"
    )
    return FailedGate(name="max_error_ratio", limit=limit, value=value, evidence=evidence)


def _error_ratio(summary: Summary) -> float:
    counts = summary.requests
    return (counts.failed + counts.dropped) / counts.planned if counts.planned else 0.0


def _level(summary: Summary) -> str:
    load = summary.load
    if load.mode is LoadMode.CONCURRENCY:
        return f"concurrency {load.concurrency}"
    return f"{load.request_rate_rps:g} requests/s"


def _limit(limit: float) -> str:
    return f"{limit * 100:.10g}%"


def _share(value: float, limit: float) -> str:
    """A percentage with three digits, or as many as set it apart from the limit."""
    digits = 3
    while digits < 15 and f"{value * 100:.{digits}g}" == f"{limit * 100:.{digits}g}":
        digits += 1
    return f"{value * 100:.{digits}g}%"
