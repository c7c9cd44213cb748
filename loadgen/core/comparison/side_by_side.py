"""Runs side by side: each candidate against one baseline, level by level."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadgen.core.comparison.cell import RATES
from loadgen.core.comparison.gates import Gate, JudgedGate, judged
from loadgen.core.comparison.metric_pair import METRICS, POOLED, MetricPair, name_of, pair
from loadgen.core.comparison.ratio import Ratio, ratio, unpaired_ratio
from loadgen.core.comparison.side import Side, Source, side_of_repeats
from loadgen.core.comparison.workload import Difference, differences
from loadgen.core.errors import ConfigError
from loadgen.core.metrics.slo import SLO_METRICS
from loadgen.core.run import LoadMode

COMPARE_SCHEMA = "loadgen.compare/1"

_OF_OBJECTIVES = ("goodput_rps", "attainment_ratio")
_DIGEST_SHOWN = 12
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
    """A candidate at one level, `at` in words; of an experiment the arm of that name.

    `metrics` has those that either run has a value of, in the order of `METRICS`; `withheld` says why a metric that one
    has is not compared. `repeats` is how many runs of each of the two it is over. `paired`: both sent the same
    requests. `valid` is that of its own measurement, None where nobody tells. `differences` of the workloads are there
    only when they were allowed.
    """

    name: str
    tool: str
    arm: str | None
    level: float | None
    at: str
    repeats: int
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

    Two single runs are compared whatever their levels, ladders by level, experiments by arm and level. Raises
    ConfigError when workloads differ, unless `allow_unlike`, when there is no level in common or one is there twice,
    and for an experiment beside something else.
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
            apart = _differences(first, second)
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
    if _is_experiment(baseline) != _is_experiment(candidate):
        experiment, other = (baseline, candidate) if _is_experiment(baseline) else (candidate, baseline)
        raise ConfigError(
            f"{experiment.name} is an experiment and {other.name} is not: give two experiments, or of this one the"
            " folder of a single run"
        )
    if len(baseline.sides) == len(candidate.sides) == 1 and not _is_experiment(baseline):
        return [(baseline.sides[0], candidate.sides[0])], [], []
    first, second = _by_level(baseline), _by_level(candidate)
    common = {key: repeats for key in first if (repeats := sorted(first[key].keys() & second.get(key, {}).keys()))}
    if not common:
        raise ConfigError(
            f"{baseline.name} and {candidate.name} have no level in common: {_listed(first)} and {_listed(second)}"
        )
    pairs = [
        (_over(first[key], repeats, second[key]), _over(second[key], repeats, first[key]))
        for key, repeats in common.items()
    ]
    of_baseline, of_candidate = (
        [str(next(iter(runs.values()))) for key, runs in levels.items() if key not in common]
        for levels in (first, second)
    )
    return pairs, of_baseline, of_candidate


def _over(runs: Mapping[int, Side], repeats: Sequence[int], others: Mapping[int, Side]) -> Side:
    """The runs of these repeats as one; which were left out is noted."""
    found = side_of_repeats([runs[repeat] for repeat in repeats])
    lacking = [str(repeat) for repeat in runs if repeat not in others]
    if not lacking:
        return found
    note = f"left out, since the other lacks it: repeat {', '.join(lacking)}"
    return replace(found, notes=(*found.notes, note))


def _is_experiment(source: Source) -> bool:
    return any(side.arm is not None for side in source.sides)


_Level = tuple[str | None, LoadMode, float | None]
_Levels = Mapping[_Level, Mapping[int, Side]]


def _by_level(source: Source) -> _Levels:
    """The runs of each level by repeat."""
    levels: dict[_Level, dict[int, Side]] = {}
    for side in source.sides:
        runs = levels.setdefault((side.arm, side.load.mode, side.level), {})
        if side.repeat in runs:
            raise ConfigError(f"{source.name}: has {side} twice; give one run of each level")
        runs[side.repeat] = side
    return levels


def _differences(baseline: Side, side: Side) -> tuple[Difference, ...]:
    """What differs in the workloads. Of experiments the requests themselves, which their intervals rest on."""
    apart = differences(baseline.workload, side.workload)
    if apart or side.arm is None or baseline.requests == side.requests:
        return apart
    return (
        Difference(
            setting="digest of the requests (seeds and place in the data included)",
            baseline=_short(baseline.requests),
            candidate=_short(side.requests),
        ),
    )


def _short(digest: str | None) -> str | None:
    return None if digest is None else digest[:_DIGEST_SHOWN]


def _listed(levels: _Levels) -> str:
    return ", ".join(str(next(iter(runs.values()))) for runs in levels.values())


def _in_words(each: Difference) -> str:
    return f"{each.setting} is {_shown(each.candidate)}, at the baseline {_shown(each.baseline)}"


def _shown(value: object) -> str:
    return "not set" if value is None else f"{value!s:.200}"


def _candidate(name: str, baseline: Side, side: Side, apart: tuple[Difference, ...]) -> Candidate:
    unlike = dict(withheld(baseline, side))
    paired = _paired(baseline, side)
    notes = dict.fromkeys(_notes(baseline, side))
    metrics = {}
    for metric in METRICS:
        values = baseline.values.get(metric), side.values.get(metric)
        if values == (None, None) or name_of(metric) in unlike:
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
        arm=side.arm,
        level=side.level,
        at=str(side),
        repeats=max(1, len(side.cells)),
        paired=paired,
        valid=side.valid,
        metrics=metrics,
        withheld={each: why for each, why in unlike.items() if _has(baseline, each) or _has(side, each)},
        differences=apart,
        notes=tuple(notes),
    )


def _has(side: Side, name: str) -> bool:
    return any(value is not None for metric, value in side.values.items() if name_of(metric) == name)


def withheld(baseline: Side, side: Side) -> Iterator[tuple[str, str]]:
    """Metrics that mean something else in the two runs, with the reason."""
    speculate = [each.speculates for each in (baseline, side)]
    if True in speculate and speculate != [True, True]:
        for name in POOLED:
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
    cells = (*baseline.cells, *side.cells)
    if not baseline.cells or not side.cells or baseline.requests is None or baseline.requests != side.requests:
        return False
    return all(np.array_equal(cells[0].seq, cell.seq) for cell in cells)


def _ratio(baseline: Side, side: Side, metric: str, *, paired: bool) -> Ratio | None:
    """With an interval, where records and their number allow one."""
    if not baseline.cells or not side.cells or name_of(metric) not in (*SLO_METRICS, *RATES):
        return None
    if paired:
        return ratio(baseline.cells, side.cells, metric)
    if len(side.cells) > 1:
        return None
    return unpaired_ratio(baseline.cells[0], side.cells[0], metric)


def _notes(baseline: Side, side: Side) -> Iterator[str]:
    yield from (f"baseline: {note}" for note in baseline.notes)
    yield from (f"candidate: {note}" for note in side.notes)
    if not baseline.cells or not side.cells:
        yield "no intervals: one of the runs has no records of single requests"
    elif len(side.cells) > 1 and not _paired(baseline, side):
        yield "no intervals: the experiments did not measure the same requests"
    if baseline.requests is None or side.requests is None:
        yield "not verified that both had the same workload: a file tells only part of it"
    if baseline.tool != side.tool:
        for each in (baseline, side):
            other = side if each is baseline else baseline
            yield from (
                f"{name}: {how}" for name, how in each.otherwise.items() if _has(each, name) and _has(other, name)
            )
