"""From runs to a comparison: every arm held against the baseline, level by level."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

from loadgen.core.analysis.findings.outcomes import came_to_nothing
from loadgen.core.comparison.arm_gates import judged_at_every_level
from loadgen.core.comparison.arms import (
    Arm,
    ArmLadder,
    ArmLevel,
    ArmRun,
    ArmsComparison,
    Expectation,
    Uncompared,
)
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.choice import Drafting, choices, schedules
from loadgen.core.comparison.crossover import crossover
from loadgen.core.comparison.explanation import Explanation, explanation, fall, told
from loadgen.core.comparison.gain import Gain, Worth
from loadgen.core.comparison.gates import Gate
from loadgen.core.comparison.losslessness import Losslessness
from loadgen.core.comparison.noise import METRIC_ERROR_RATIO, noise_floors
from loadgen.core.comparison.objection import Against, Objection, objections
from loadgen.core.comparison.pareto import operating_point, pareto_front
from loadgen.core.comparison.ratio import METRICS, Ratio, ratio
from loadgen.core.comparison.trade_off import HEADLINE, trade_offs
from loadgen.core.comparison.verdict import FAMILY_ERROR_RATIO, faster_up_to, unclaimed, verdicts
from loadgen.core.metrics.summary import Verdict
from loadgen.core.run import Load
from loadgen.core.stats.bootstrap import Estimate


def compare(
    name: str,
    variable: str,
    runs: Mapping[Arm, Sequence[ArmRun]],
    *,
    baseline: Arm,
    again: tuple[Arm, Sequence[ArmRun]] | None = None,
    forced: Mapping[Arm, Mapping[int, Sequence[ArmRun]]] = MappingProxyType({}),
    expected: Mapping[Arm, Mapping[float, Expectation]],
    losslessness: Mapping[str, Losslessness] = MappingProxyType({}),
    price_per_hour: float | None = None,
    notes: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    gated: Mapping[Arm, Mapping[float, Load]] = MappingProxyType({}),
    planned_runs: int | None = None,
) -> ArmsComparison:
    """Every other arm against `baseline`, in the order of `runs`: for each level one run of each arm and repeat.

    `again` is the baseline's second start, `forced` has the runs of an arm with its acceptance forced, by tokens a
    step, `losslessness` what texts show, by arm. A repeat that one side of a comparison lacks does not count for the
    other. `gated` are the levels at which gates are judged whether there are runs or not.
    Raises ConfigError when runs that are to be compared did not send the same requests.
    """
    repeats = len({run.cell.repeat for run in runs[baseline]})
    assembly = _Assembly(
        baseline=_by_level(runs[baseline]),
        several_starts=repeats > 1,
        price_per_hour=price_per_hour,
        notes=dict.fromkeys(notes),
    )
    itself, noise = None, list[Ratio]()
    if again is not None:
        itself, noise = assembly.ladder(*again, error_ratio=METRIC_ERROR_RATIO), assembly.noise(again[1])
    arms = tuple(
        assembly.ladder(
            arm,
            ran,
            noise=noise,
            forced=forced.get(arm, {}),
            expected=expected.get(arm, {}),
            losslessness=losslessness.get(arm.name),
        )
        for arm, ran in runs.items()
        if arm != baseline
    )
    levels = list(assembly.baseline)
    gains = {ladder.arm: ladder.gains for ladder in arms}
    drafting = [found for ladder in arms if (found := _drafting(ladder)) is not None]
    every_run = [*runs.values(), *(ran for of_arm in forced.values() for ran in of_arm.values())]
    if again is not None:
        every_run.append(again[1])
    points = [
        operating_point([run.cell for run in found], gpus=arm.gpus)
        for arm, ran in runs.items()
        for found in _by_level(ran).values()
        if _valid(found)
    ]
    return ArmsComparison(
        name=name,
        variable=variable,
        repeats=repeats,
        baseline=ArmLadder(
            arm=baseline,
            levels=tuple(assembly.level(ran) for ran in assembly.baseline.values()),
            crossover=None,
            faster_up_to=None,
            fall=None,
            losslessness=None,
        ),
        arms=arms,
        again=itself,
        noise=()
        if itself is None
        else noise_floors(noise, {level for level, gain in itself.gains.items() if gain.valid and not gain.one_start}),
        choices=choices(levels, baseline.name, {arm.name: of_arm for arm, of_arm in gains.items()}),
        schedules=schedules(levels, drafting) if variable == "concurrency" else (),
        pareto=pareto_front([point for point in points if point is not None]),
        price_per_hour=price_per_hour,
        notes=tuple(assembly.notes),
        gates=judged_at_every_level(
            gates,
            assembly.baseline,
            {arm: _by_level(ran) for arm, ran in runs.items() if arm != baseline},
            gated,
        ),
        finished_runs=sum(map(len, every_run)),
        planned_runs=planned_runs,
    )


def _drafting(ladder: ArmLadder) -> Drafting | None:
    arm = ladder.arm
    if arm.method is None or arm.draft_tokens is None:
        return None
    return Drafting(
        label=arm.label,
        method=arm.method,
        draft_tokens=arm.draft_tokens,
        configuration=arm.configuration,
        levels={level.level for level in ladder.levels},
        gains=ladder.gains,
        barred={
            level.level
            for level in ladder.levels
            if level.objections or (level.gain is not None and level.gain.worth is Worth.WITHHELD)
        },
    )


_Levels = Mapping[float, Sequence[ArmRun]]


def _valid(runs: Sequence[ArmRun]) -> bool:
    return all(run.summary.verdict.valid for run in runs)


def _judgeable(runs: Sequence[ArmRun]) -> bool:
    """Whether what became of requests may be held against the arm: nothing is wrong but that all of them failed."""
    return all(
        run.summary.verdict.valid or (run.summary.requests.failed > 0 and came_to_nothing(run.summary.verdict))
        for run in runs
    )


def _by_level(runs: Sequence[ArmRun]) -> dict[float, list[ArmRun]]:
    ordered = sorted(runs, key=lambda run: run.cell.level)
    return {level: list(found) for level, found in groupby(ordered, key=lambda run: run.cell.level)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Assembly:
    """What all ladders share; `notes` is filled on the way, as an ordered set.

    Where there are `several_starts`, a level with but one in common says nothing of how much starts differ, and nothing
    is claimed of it beside levels that do.
    """

    baseline: _Levels
    several_starts: bool
    price_per_hour: float | None
    notes: dict[str, None]

    def noise(self, again: Sequence[ArmRun]) -> list[Ratio]:
        """The ratios of the baseline against itself, of every metric and level."""
        return [
            found
            for level, ran in _by_level(again).items()
            if level in self.baseline
            for found in self._ratios(ran).values()
        ]

    def ladder(
        self,
        arm: Arm,
        runs: Sequence[ArmRun],
        *,
        noise: Sequence[Ratio] = (),
        forced: Mapping[int, Sequence[ArmRun]] = MappingProxyType({}),
        expected: Mapping[float, Expectation] = MappingProxyType({}),
        losslessness: Losslessness | None = None,
        error_ratio: float = FAMILY_ERROR_RATIO,
    ) -> ArmLadder:
        levels = _by_level(runs)
        forced_levels = {length: _by_level(ran) for length, ran in forced.items()}
        ratios = {level: self._ratios(ran) for level, ran in levels.items() if level in self.baseline}
        headlines = {level: found[HEADLINE] for level, found in ratios.items() if HEADLINE in found}
        valid = {level for level in headlines if _valid(levels[level]) and _valid(self.baseline[level])}
        lone = {
            level for level, each in headlines.items() if self.several_starts and each.log_ratio.start_variance is None
        }
        against = objections({level: pair for level, ran in levels.items() if (pair := self._pair(ran)) is not None})
        valid_work = {
            level
            for level in valid - lone
            if all(each.against is not Against.LENGTHS for each in against.get(level, ()))
        }
        judged = verdicts(
            [each for level, each in headlines.items() if level in valid_work], noise, error_ratio=error_ratio
        )
        beside = trade_offs(judged, ratios, noise)
        claims = {level: unclaimed(each) for level, each in headlines.items()} | {each.level: each for each in judged}
        self.notes.update(
            {note.value: None for found in ratios.values() for each in found.values() for note in each.notes}
        )
        made = []
        for level, ran in levels.items():
            gain = why = uncompared = None
            if level not in claims:
                uncompared = self._uncompared(ran)
            else:
                gain = Gain(
                    verdict=claims[level],
                    ratios={metric: each.estimate for metric, each in ratios[level].items()},
                    trade_offs=beside.get(level, ()),
                    objections=against.get(level, ()),
                    left_out_ratio=headlines[level].left_out_ratio,
                    break_even_length=_break_even(headlines[level], _mean([run.cell.tokens_per_step for run in ran])),
                    valid=level in valid,
                    one_start=level in lone,
                )
                why = self._why(
                    arm, ran, {length: found[level] for length, found in forced_levels.items() if level in found}, gain
                )
            made.append(
                self.level(
                    ran,
                    gain=gain,
                    uncompared=uncompared,
                    against=against.get(level, ()),
                    why=why,
                    expected=expected.get(level),
                )
            )
        trusted = [level for level in made if level.level in valid_work]
        lengths = [level.tokens_per_step for level in trusted]
        needed = [None if level.explanation is None else level.explanation.needed for level in trusted]
        return ArmLadder(
            arm=arm,
            levels=tuple(made),
            crossover=crossover(judged, [self._tpot_s(each.level) for each in judged]) if judged else None,
            faster_up_to=faster_up_to(judged),
            fall=fall(judged, lengths, needed) if judged else None,
            losslessness=losslessness,
        )

    def level(
        self,
        runs: Sequence[ArmRun],
        *,
        gain: Gain | None = None,
        uncompared: Uncompared | None = None,
        against: tuple[Objection, ...] = (),
        why: Explanation | None = None,
        expected: Expectation | None = None,
    ) -> ArmLevel:
        point = operating_point([run.cell for run in runs])
        verdict = [run.summary.verdict for run in runs]
        rate = None if point is None else point.output_tokens_per_s
        return ArmLevel(
            level=runs[0].cell.level,
            requests=sum(len(run.cell.seq) for run in runs),
            tpot_s=None if point is None else 1 / point.user_tokens_per_s,
            output_tokens_per_s=rate,
            acceptance_length=_mean([run.cell.acceptance_length for run in runs]),
            tokens_per_step=_mean([run.cell.tokens_per_step for run in runs]),
            cost_per_million_tokens=None
            if rate is None or self.price_per_hour is None
            else self.price_per_hour / 3600 / rate * 1e6,
            told=told([run.summary for run in runs]),
            measurement=Verdict(
                valid=all(each.valid for each in verdict),
                findings=tuple(finding for each in verdict for finding in each.findings),
            ),
            gain=gain,
            uncompared=uncompared,
            objections=against,
            explanation=why,
            expected=expected,
        )

    def _ratios(self, arm: Sequence[ArmRun]) -> dict[str, Ratio]:
        first, second = _of_common_repeats(self.baseline[arm[0].cell.level], arm)
        if not second:
            return {}
        return {metric: found for metric in METRICS if (found := ratio(first, second, metric)) is not None}

    def _pair(self, arm: Sequence[ArmRun]) -> tuple[Sequence[Cell], Sequence[Cell]] | None:
        """The runs of both of one level, of common repeats; None where there are none, or one cannot be judged."""
        baseline = self.baseline.get(arm[0].cell.level, ())
        first, second = _of_common_repeats(baseline, arm)
        return (first, second) if second and _judgeable(baseline) and _judgeable(arm) else None

    def _uncompared(self, arm: Sequence[ArmRun]) -> Uncompared:
        baseline = self.baseline.get(arm[0].cell.level, ())
        return Uncompared.FEW if _of_common_repeats(baseline, arm)[1] else Uncompared.NO_PAIR

    def _tpot_s(self, level: float) -> float:
        """The baseline's at a level at which some ratio of it is known; geometric mean of the repeats."""
        tpot_s = [run.cell.columns["tpot_s"] for run in self.baseline[level]]
        found = _mean([float(each[each > 0].mean()) for each in tpot_s])
        assert found is not None
        return found

    def _why(self, arm: Arm, runs: Sequence[ArmRun], forced: Mapping[int, Sequence[ArmRun]], gain: Gain) -> Explanation:
        baseline, own, *rest = _of_common_repeats(self.baseline[runs[0].cell.level], runs, *forced.values())
        return explanation(
            baseline,
            own,
            {length: cells for length, cells in zip(forced, rest, strict=True) if cells},
            speedup=gain.verdict.speedup.value,
            draft_tokens=arm.draft_tokens,
            coverage_ratio=told([run.summary for run in runs]).coverage_ratio,
            forced_coverage_ratio=told([run.summary for run in forced.get(1, ())]).coverage_ratio,
        )


def _of_common_repeats(*sides: Sequence[ArmRun]) -> list[list[Cell]]:
    common = set.intersection(*({run.cell.repeat for run in side} for side in sides))
    return [[run.cell for run in side if run.cell.repeat in common] for side in sides]


def _break_even(headline: Ratio, tokens_per_step: float | None) -> Estimate | None:
    """A step of the arm takes its TPOT times the tokens that it emits, one of the baseline its TPOT."""
    return None if tokens_per_step is None else headline.log_ratio.times(tokens_per_step).estimate()


def _mean(values: Sequence[float | None]) -> float | None:
    """The geometric mean; None when one has no value."""
    known = [value for value in values if value is not None and value > 0]
    return math.prod(known) ** (1 / len(known)) if len(known) == len(values) else None
