"""Arms against a baseline over a ladder of load: all that a report of them says, as values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.crossover import Crossover, crossover
from loadgen.core.comparison.pareto import operating_point
from loadgen.core.comparison.ratio import METRICS, Ratio, ratio
from loadgen.core.comparison.verdict import LevelVerdict, faster_up_to, verdicts
from loadgen.core.metrics.summary import Summary, Verdict
from loadgen.core.stats.bootstrap import Estimate

COMPARISON_SCHEMA = "loadgen.comparison/1"

_HEADLINE = "tpot_s.mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to serve: its `name` in cells and folders, its `label` for people."""

    name: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    """One run of an arm: what it is compared by, and its summary."""

    cell: Cell
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a model of the server expected of an arm at one level: speedup of TPOT, and break-even tokens per step."""

    speedup: float
    break_even_length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """An arm against the baseline at one level.

    `ratios` are arm / baseline by metric (those of `METRICS` that have a value), `verdict` is the speedup of mean TPOT
    and what is claimed of it, `left_out_ratio` the share of its requests that lack a TPOT in some run.
    `break_even_length` is tokens per step over that speedup: the tokens that a step has to emit for mean TPOT to be the
    baseline's. None where tokens per step are not known.
    """

    verdict: LevelVerdict
    ratios: Mapping[str, Estimate]
    left_out_ratio: float
    break_even_length: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLevel:
    """One arm at one level, over its repeats: geometric means, and the verdict on all of its measurements together.

    `tpot_s` is the mean over requests, `acceptance_length` and `tokens_per_step` as in a summary. `gain` is None for
    the baseline, and where too few requests can be compared.
    """

    level: float
    requests: int
    tpot_s: float | None
    output_tokens_per_s: float | None
    acceptance_length: float | None
    tokens_per_step: float | None
    measurement: Verdict
    gain: Gain | None
    expected: Expectation | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmLadder:
    """One arm over its levels, ascending. The last two are of the speedup of mean TPOT; None for the baseline."""

    arm: Arm
    levels: tuple[ArmLevel, ...]
    crossover: Crossover | None
    faster_up_to: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsComparison:
    """Arms over the levels of a `variable`, each against the baseline. `repeats` counts the starts of each arm."""

    schema: str = COMPARISON_SCHEMA
    name: str
    variable: str
    repeats: int
    baseline: ArmLadder
    arms: tuple[ArmLadder, ...]
    notes: tuple[str, ...]

    @property
    def ladders(self) -> tuple[ArmLadder, ...]:
        """Of every arm, the baseline's first."""
        return (self.baseline, *self.arms)

    @property
    def valid(self) -> bool:
        """Whether every measurement of it is."""
        return all(level.measurement.valid for ladder in self.ladders for level in ladder.levels)


def compare(
    name: str,
    variable: str,
    runs: Mapping[Arm, Sequence[ArmRun]],
    *,
    baseline: Arm,
    expected: Mapping[Arm, Mapping[float, Expectation]],
    notes: Sequence[str] = (),
) -> ArmsComparison:
    """Every other arm against `baseline`, in the order of `runs`: for each level one run of each arm and repeat.

    Raises ConfigError when runs that are to be compared did not send the same requests.
    """
    levels = {arm: _by_level(ran) for arm, ran in runs.items()}
    said: dict[str, None] = dict.fromkeys(notes)
    arms = []
    for arm, found in levels.items():
        if arm != baseline:
            arms.append(_ladder(arm, found, levels[baseline], expected.get(arm, {}), said))
    repeats = {run.cell.repeat for run in runs[baseline]}
    return ArmsComparison(
        name=name,
        variable=variable,
        repeats=len(repeats),
        baseline=ArmLadder(
            arm=baseline,
            levels=tuple(_level(ran, None, None) for ran in levels[baseline].values()),
            crossover=None,
            faster_up_to=None,
        ),
        arms=tuple(arms),
        notes=tuple(said),
    )


def _by_level(runs: Sequence[ArmRun]) -> dict[float, list[ArmRun]]:
    ordered = sorted(runs, key=lambda run: run.cell.level)
    return {level: list(found) for level, found in groupby(ordered, key=lambda run: run.cell.level)}


def _ladder(
    arm: Arm,
    levels: Mapping[float, Sequence[ArmRun]],
    baseline: Mapping[float, Sequence[ArmRun]],
    expected: Mapping[float, Expectation],
    notes: dict[str, None],
) -> ArmLadder:
    ratios = {level: _ratios(baseline[level], ran) for level, ran in levels.items() if level in baseline}
    headlines = {level: found[_HEADLINE] for level, found in ratios.items() if _HEADLINE in found}
    claims = dict(zip(headlines, verdicts(list(headlines.values())), strict=True))
    notes |= {note.value: None for found in ratios.values() for each in found.values() for note in each.notes}
    made = []
    for level, ran in levels.items():
        gain = None
        if level in claims:
            gain = Gain(
                verdict=claims[level],
                ratios={metric: each.estimate for metric, each in ratios[level].items()},
                left_out_ratio=headlines[level].left_out_ratio,
                break_even_length=_break_even(headlines[level], _mean([run.cell.tokens_per_step for run in ran])),
            )
        made.append(_level(ran, gain, expected.get(level)))
    return ArmLadder(
        arm=arm,
        levels=tuple(made),
        crossover=crossover(list(claims), [claim.speedup for claim in claims.values()]) if claims else None,
        faster_up_to=faster_up_to(list(claims.values())),
    )


def _ratios(baseline: Sequence[ArmRun], arm: Sequence[ArmRun]) -> dict[str, Ratio]:
    sides = [run.cell for run in baseline], [run.cell for run in arm]
    return {metric: found for metric in METRICS if (found := ratio(*sides, metric)) is not None}


def _break_even(headline: Ratio, tokens_per_step: float | None) -> Estimate | None:
    """A step of the arm takes its TPOT times the tokens that it emits, one of the baseline its TPOT."""
    return None if tokens_per_step is None else headline.log_ratio.times(tokens_per_step).estimate()


def _level(runs: Sequence[ArmRun], gain: Gain | None, expected: Expectation | None) -> ArmLevel:
    point = operating_point([run.cell for run in runs])
    verdict = [run.summary.verdict for run in runs]
    return ArmLevel(
        level=runs[0].cell.level,
        requests=sum(len(run.cell.seq) for run in runs),
        tpot_s=None if point is None else 1 / point.user_tokens_per_s,
        output_tokens_per_s=None if point is None else point.output_tokens_per_s,
        acceptance_length=_mean([run.cell.acceptance_length for run in runs]),
        tokens_per_step=_mean([run.cell.tokens_per_step for run in runs]),
        measurement=Verdict(
            valid=all(each.valid for each in verdict),
            findings=tuple(finding for each in verdict for finding in each.findings),
        ),
        gain=gain,
        expected=expected,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The geometric mean; None when one has no value."""
    known = [value for value in values if value is not None and value > 0]
    return math.prod(known) ** (1 / len(known)) if len(known) == len(values) else None
