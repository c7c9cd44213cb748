"""Metrics of searches for a capacity: what each came to, for whoever keeps their history."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from loadgen.adapters.prometheus.series import Labels, Series, Spec
from loadgen.core.capacity.probe import Verdict
from loadgen.core.capacity.result import CapacityResult
from loadgen.core.capacity.search import Search, next_step


class CapacityVerdict(IntEnum):
    """What a search came to, as the value of its metric."""

    MET = 0
    NOT_MET = 1
    INVALID = 2
    UNFINISHED = 3


VERDICT = Spec.of(
    "capacity_verdict",
    "gauge",
    "What a search came to: 0 a level met the objectives, 1 the first one did not, 2 invalid, 3 unfinished.",
)
ENDED = Spec.of("capacity_ended_timestamp_seconds", "gauge", "When a search ended, as Unix time.", "seconds")
CAPACITY_NUMBERS = {
    "level": Spec.of("capacity_level", "gauge", "The highest load that met the objectives."),
    "low": Spec.of("capacity_low_level", "gauge", "The highest load that met the objectives for certain."),
    "high": Spec.of("capacity_high_level", "gauge", "The lowest load that missed the objectives for certain."),
    "requests": Spec.of("capacity_requests_per_second", "gauge", "Completed requests a second at the capacity."),
    "output": Spec.of("capacity_output_tokens_per_second", "gauge", "Output tokens a second at the capacity."),
    "attainment": Spec.of("capacity_attainment_ratio", "gauge", "Share of due requests that met every objective."),
    "target": Spec.of("capacity_target_ratio", "gauge", "Share of due requests that has to meet every objective."),
}
CAPACITY_SPECS = (VERDICT, ENDED, *CAPACITY_NUMBERS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSearch:
    """A search that is over, and when it ended."""

    labels: Labels
    search: Search
    result: CapacityResult
    ended_unix_s: float


def capacity_series(ended: EndedSearch, unix_s: float | None = None) -> Iterator[tuple[Spec, Series]]:
    """What a search came to. One that shows nothing has no capacity, not that of its last level that passed."""
    result = ended.result
    common = {**ended.labels.as_dict(), "variable": result.variable}
    verdict = verdict_of(ended.search, result)
    yield VERDICT, Series(labels=common, value=verdict, unix_s=unix_s)
    yield ENDED, Series(labels=common, value=ended.ended_unix_s, unix_s=unix_s)
    numbers: dict[str, float | None] = {"target": result.attainment.target_ratio}
    if verdict is CapacityVerdict.MET:
        numbers |= _numbers(result)
    for name, number in numbers.items():
        if number is not None:
            yield CAPACITY_NUMBERS[name], Series(labels=common, value=number, unix_s=unix_s)


def verdict_of(search: Search, result: CapacityResult) -> CapacityVerdict:
    """What a search came to; a last run that is invalid or was cut short leaves open what the levels above carry."""
    if not result.probes or next_step(search, result.probes) is not None:
        return CapacityVerdict.UNFINISHED
    match result.probes[-1].verdict:
        case Verdict.INVALID:
            return CapacityVerdict.INVALID
        case Verdict.CUT_SHORT:
            return CapacityVerdict.UNFINISHED
    return CapacityVerdict.NOT_MET if result.capacity is None else CapacityVerdict.MET


def _numbers(result: CapacityResult) -> dict[str, float | None]:
    capacity, attained = result.capacity, result.attainment.at_capacity
    if capacity is None:
        return {}
    return {
        "level": capacity.level,
        "low": capacity.low,
        "high": capacity.high,
        "requests": capacity.requests_per_s,
        "output": capacity.output_tokens_per_s,
        "attainment": None if attained is None else attained.ratio,
    }
