"""What a search came to: field for field the contract of `capacity.json`."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadgen.core.capacity.probe import Attainment, Ground, Probe, Run, Shortfall, Verdict, judge
from loadgen.core.capacity.search import Search, bracket_of, next_step

CAPACITY_SCHEMA = "loadgen.capacity/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How runs of one level differ, over the `levels` that have several `runs` and attained neither all nor nothing.

    `factor` is the spread of their attainment over what chance would make of independent requests: about 1 when they
    are that, above when runs or requests are not alike.
    """

    levels: int
    runs: int
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The highest level that passed. It lies in `low` up to `high`, the latter excluded.

    `low` is the highest level that passed by its interval, `high` the lowest that failed by it or was overloaded; None
    where there is no such level. `ground` is what decided `level` itself. `per_gpu` is level / GPUs where asked for.
    """

    level: float
    low: float | None
    high: float | None
    ground: Ground
    requests_per_s: float | None
    output_tokens_per_s: float | None
    per_gpu: float | None
    noise: Noise | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attained:
    """What was asked for, and what the capacity attains, None without one. `objectives` in seconds by metric."""

    objectives: dict[str, float]
    target_ratio: float
    at_capacity: Attainment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFailed:
    """The lowest level that failed, and why: in words, and which objectives by how much."""

    level: float
    ground: Ground
    attainment: Attainment
    why: str
    shortfall: Shortfall | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityResult:
    """`capacity.json`. Without a capacity the first level failed, or was never decided; `probes` are in order."""

    schema: str = CAPACITY_SCHEMA
    variable: str
    capacity: Capacity | None
    attainment: Attained
    next_failed: NextFailed | None
    probes: tuple[Probe, ...]


def result_of(
    search: Search, probes: Sequence[Probe], *, objectives: Mapping[str, float], gpus: int | None = None
) -> CapacityResult:
    """The result of the probes so far, whether or not the search is over."""
    bracket = bracket_of(probes)
    passed, failed = bracket.passed, bracket.failed
    return CapacityResult(
        variable=search.variable,
        capacity=None if passed is None else _capacity(passed, probes, gpus),
        attainment=Attained(
            objectives=dict(objectives),
            target_ratio=search.rule.attainment_ratio,
            at_capacity=None if passed is None else passed.attainment,
        ),
        next_failed=None if failed is None else _failed(failed),
        probes=tuple(probes),
    )


def replayed(
    search: Search, runs: Iterable[tuple[float, Run]], *, objectives: Mapping[str, float], gpus: int | None = None
) -> CapacityResult:
    """The result of runs with their levels, in the order in which they were run."""
    probes: list[Probe] = []
    at_level: list[Run] = []
    for level, run in runs:
        at_level = [*at_level, run] if probes and probes[-1].level == level else [run]
        probes.append(judge(search.rule, level, at_level))
    return result_of(search, probes, objectives=objectives, gpus=gpus)


def outcome_words(search: Search, result: CapacityResult) -> str:
    """Why the search ended where it did, in a sentence without its end."""
    probes, failed = result.probes, result.next_failed
    if not probes:
        return "no run has ended"
    last = probes[-1]
    if next_step(search, probes) is not None:
        return "the search was not finished"
    if last.verdict in (Verdict.CUT_SHORT, Verdict.INVALID):
        return f"the search ended early: {last.why}"
    if result.capacity is None:
        return (
            f"the first level already fails; {'no lower one' if search.whole and search.start == 1 else 'start lower'}"
        )
    if failed is None:
        return "the highest level that was asked for passes; the limit lies above"
    return f"the next level tried, {failed.level:g}, fails"


def _capacity(passed: Probe, probes: Sequence[Probe], gpus: int | None) -> Capacity:
    assert passed.ground is not None
    sure = [probe for probe in probes if probe.ground not in (None, Ground.ESTIMATE)]
    return Capacity(
        level=passed.level,
        low=max((probe.level for probe in sure if probe.verdict is Verdict.PASS), default=None),
        high=min((probe.level for probe in sure if probe.verdict is Verdict.FAIL), default=None),
        ground=passed.ground,
        requests_per_s=passed.summary.requests_per_s,
        output_tokens_per_s=passed.summary.output_tokens_per_s,
        per_gpu=None if gpus is None else passed.level / gpus,
        noise=noise_of(probes),
    )


def _failed(failed: Probe) -> NextFailed:
    assert failed.ground is not None
    return NextFailed(
        level=failed.level,
        ground=failed.ground,
        attainment=failed.attainment,
        why=failed.why,
        shortfall=failed.shortfall,
    )


def noise_of(probes: Sequence[Probe]) -> Noise | None:
    """How runs of the same level differ: the root of Pearson's chi-square of good and not good over its degrees.

    None when no level was run twice with some requests good and some not.
    """
    by_level: dict[float, list[Probe]] = {}
    for probe in probes:
        if probe.due and probe.verdict not in (Verdict.INVALID, Verdict.CUT_SHORT):
            by_level.setdefault(probe.level, []).append(probe)
    chi_square, levels, runs = 0.0, 0, 0
    for several in by_level.values():
        share = sum(run.good for run in several) / sum(run.due for run in several)
        if len(several) < 2 or share in (0.0, 1.0):
            continue
        chi_square += sum((run.good - run.due * share) ** 2 / (run.due * share * (1 - share)) for run in several)
        levels, runs = levels + 1, runs + len(several)
    if not levels:
        return None
    return Noise(levels=levels, runs=runs, factor=math.sqrt(chi_square / (runs - levels)))
