"""Runs side by side: each candidate against one baseline, level by level."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadgen.core.comparison.cell import RATES
from loadgen.core.comparison.gates import Gate, JudgedGate, judged
from loadgen.core.comparison.metric_pair import METRICS, MetricPair, name_of, pair
from loadgen.core.comparison.ratio import Ratio, ratio, unpaired_ratio
from loadgen.core.comparison.side import Side, Source, level_text
from loadgen.core.comparison.workload import Difference, differences
from loadgen.core.errors import ConfigError
from loadgen.core.metrics.slo import SLO_METRICS
from loadgen.core.run import LoadMode

COMPARE_SCHEMA = "loadgen.compare/1"

_GAPS = ("icl_s", "itl_s")
_OF_OBJECTIVES = ("goodput_rps", "attainment_ratio")
_OF_ACCEPTANCE = ("acceptance_length", "acceptance_ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A level of a source, `at` in words."""

    name: str
    at: str

    def __str__(self) -> str:
        return f"{self.name} at {self.at}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineFacts:
    """What candidates are held against. `invalid` are the levels whose measurement is, in words."""

    name: str
    tool: str
    levels: tuple[str, ...]
    invalid: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A candidate at one level, `at` in words.

    `metrics` has those that either run has a value of, in the order of `METRICS`; `withheld` says why a metric that one
    has is not compared. `paired`: both sent the same requests. `valid` is that of its own measurement, None where
    nobody tells. `differences` of the workloads are there only when they were allowed.
    """

    name: str
    tool: str
    level: float | None
    at: str
    paired: bool
    valid: bool | None
    metrics: Mapping[str, MetricPair]
    withheld: Mapping[str, str]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """`compare --json`. `unmatched` are levels that a ladder has, and that it was to be compared with has not."""

    schema: str = COMPARE_SCHEMA
    baseline: BaselineFacts
    candidates: tuple[Candidate, ...]
    unmatched: tuple[Place, ...]
    gates: tuple[JudgedGate, ...] = ()

    @property
    def invalid(self) -> tuple[Place, ...]:
        """The runs whose measurement is."""
        of_baseline = (Place(name=self.baseline.name, at=at) for at in self.baseline.invalid)
        return (*of_baseline, *(Place(name=each.name, at=each.at) for each in self.candidates if each.valid is False))

    @property
    def failed(self) -> tuple[JudgedGate, ...]:
        """The gates that failed."""
        return tuple(gate for gate in self.gates if gate.failed)


def side_by_side(
    baseline: Source, candidates: Sequence[Source], gates: Sequence[Gate] = (), *, allow_unlike: bool = False
) -> SideBySide:
    """Every candidate against the baseline, with the gates judged at every level.

    Two single runs are compared whatever their levels, ladders by level. Raises ConfigError when workloads differ,
    unless `allow_unlike`, and when ladders have no level in common or one has a level twice.
    """
    found: list[Candidate] = []
    unmatched: list[Place] = []
    lacking: list[Place] = []
    refused: list[str] = []
    matched: dict[str, Side] = {}
    for source in candidates:
        pairs, of_baseline, of_candidate = _matched(baseline, source)
        lacking += [Place(name=source.name, at=at) for at in of_baseline]
        unmatched += [Place(name=baseline.name, at=at) for at in of_baseline]
        unmatched += [Place(name=source.name, at=at) for at in of_candidate]
        for first, second in pairs:
            matched[str(first)] = first
            apart = differences(first.workload, second.workload)
            refused += [f"{source.name} at {second}: {_in_words(each)}" for each in apart]
            found.append(_candidate(source.name, first, second, apart))
    if refused and not allow_unlike:
        listed = "\n  ".join(refused)
        raise ConfigError(f"not the same workload as {baseline.name}; --allow-unlike compares all the same\n  {listed}")
    compared = SideBySide(
        baseline=BaselineFacts(
            name=baseline.name,
            tool=baseline.sides[0].tool,
            levels=tuple(matched),
            invalid=tuple(at for at, side in matched.items() if side.valid is False),
        ),
        candidates=tuple(found),
        unmatched=tuple(dict.fromkeys(unmatched)),
    )
    return replace(compared, gates=tuple(_judged(gates, found, lacking)))


def _judged(gates: Sequence[Gate], candidates: Sequence[Candidate], lacking: Sequence[Place]) -> Iterator[JudgedGate]:
    """Each gate at every level of the baseline; a candidate that lacks the level fails it there."""
    for gate in gates:
        for each in candidates:
            reason = each.withheld.get(name_of(gate.metric))
            yield judged(gate, each.metrics.get(gate.metric), candidate=each.name, at=each.at, reason=reason)
        for place in lacking:
            yield judged(gate, None, candidate=place.name, at=place.at, reason="the candidate has no such level")


def _matched(baseline: Source, candidate: Source) -> tuple[list[tuple[Side, Side]], list[str], list[str]]:
    """The runs that belong together, and the levels in words that only the baseline or only the candidate has."""
    if len(baseline.sides) == len(candidate.sides) == 1:
        return [(baseline.sides[0], candidate.sides[0])], [], []
    first, second = _by_level(baseline), _by_level(candidate)
    common = [key for key in first if key in second]
    if not common:
        raise ConfigError(
            f"{baseline.name} and {candidate.name} have no level in common: {_listed(first)} and {_listed(second)}"
        )
    alone = [[str(side) for key, side in levels.items() if key not in common] for levels in (first, second)]
    return [(first[key], second[key]) for key in common], alone[0], alone[1]


def _by_level(source: Source) -> dict[tuple[LoadMode, float | None], Side]:
    levels: dict[tuple[LoadMode, float | None], Side] = {}
    for side in source.sides:
        key = (side.load.mode, side.level)
        if key in levels:
            raise ConfigError(f"{source.name}: has {level_text(side.load)} twice; give one run of each level")
        levels[key] = side
    return levels


def _listed(levels: Mapping[tuple[LoadMode, float | None], Side]) -> str:
    return ", ".join(map(str, levels.values()))


def _in_words(each: Difference) -> str:
    return f"{each.setting} is {_shown(each.candidate)}, at the baseline {_shown(each.baseline)}"


def _shown(value: object) -> str:
    return "not set" if value is None else f"{value!s:.200}"


def _candidate(name: str, baseline: Side, side: Side, apart: tuple[Difference, ...]) -> Candidate:
    withheld = dict(_withheld(baseline, side))
    paired = _paired(baseline, side)
    notes = dict.fromkeys(_notes(baseline, side))
    metrics = {}
    for metric in METRICS:
        values = baseline.values.get(metric), side.values.get(metric)
        if values == (None, None) or name_of(metric) in withheld:
            continue
        estimate = None if None in values else _ratio(baseline, side, metric, paired=paired)
        if estimate is not None:
            notes |= {note.value: None for note in estimate.notes}
            if estimate.left_out_ratio:
                notes["a ratio with an interval leaves out requests that lack the metric in one of the runs"] = None
        metrics[metric] = pair(*values, None if estimate is None else estimate.estimate)
    return Candidate(
        name=name,
        tool=side.tool,
        level=side.level,
        at=str(side),
        paired=paired,
        valid=side.valid,
        metrics=metrics,
        withheld={each: why for each, why in withheld.items() if _has(baseline, each) or _has(side, each)},
        differences=apart,
        notes=tuple(notes),
    )


def _has(side: Side, name: str) -> bool:
    return any(value is not None for metric, value in side.values.items() if name_of(metric) == name)


def _withheld(baseline: Side, side: Side) -> Iterator[tuple[str, str]]:
    """Metrics that mean something else in the two runs, with the reason."""
    speculate = [each.speculates for each in (baseline, side)]
    if True in speculate and speculate != [True, True]:
        for name in _GAPS:
            yield name, "an event of speculative decoding is a step, not a token, and only one of the runs speculates"
    if None not in (baseline.objectives, side.objectives) and baseline.objectives != side.objectives:
        for name in _OF_OBJECTIVES:
            yield name, "the runs have other objectives"
    if None not in (baseline.population, side.population) and baseline.population != side.population:
        for name in _OF_ACCEPTANCE:
            yield name, f"counted over {_steps(baseline)} and over {_steps(side)}"


def _steps(side: Side) -> str:
    return str(side.population).replace("_", " ")


def _paired(baseline: Side, side: Side) -> bool:
    """Whether both measured the same requests."""
    if baseline.cell is None or side.cell is None:
        return False
    if baseline.requests is None or baseline.requests != side.requests:
        return False
    return np.array_equal(baseline.cell.seq, side.cell.seq)


def _ratio(baseline: Side, side: Side, metric: str, *, paired: bool) -> Ratio | None:
    """With an interval, where records and their number allow one."""
    if baseline.cell is None or side.cell is None or name_of(metric) not in (*SLO_METRICS, *RATES):
        return None
    if paired:
        return ratio([baseline.cell], [side.cell], metric)
    return unpaired_ratio(baseline.cell, side.cell, metric)


def _notes(baseline: Side, side: Side) -> Iterator[str]:
    yield from (f"baseline: {note}" for note in baseline.notes)
    yield from (f"candidate: {note}" for note in side.notes)
    if baseline.cell is None or side.cell is None:
        yield "no intervals: one of the runs has no records of single requests"
    if baseline.requests is None or side.requests is None:
        yield "not verified that both had the same workload: a file tells only part of it"
    if baseline.tool != side.tool:
        for each in (baseline, side):
            other = side if each is baseline else baseline
            yield from (
                f"{name}: {how}" for name, how in each.otherwise.items() if _has(each, name) and _has(other, name)
            )
