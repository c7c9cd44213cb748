"""What a comparison stands on, in words: how far the baseline is from itself, what is missing or not compared."""

from collections.abc import Sequence

from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.comparison.arms import ArmLadder, ArmLevel, ArmsComparison, Uncompared
from loadgen.core.comparison.noise import NOISE_METRICS, NoiseFloor
from loadgen.core.comparison.ratio import MIN_PAIRED_REQUESTS
from loadgen.report.comparison.trade_offs import METRIC_LABELS, levels_text, listed
from loadgen.report.verdict import Doubt
from loadgen.report.words import asked, percent, printable

BASELINE_DIFFERS = "baseline_differs"
"""A doubt about a comparison: its baseline is not the same from one start to the next."""

LONE_START = "one start of both is left, which does not tell how much starts differ"
"""Why nothing is claimed of a level beside others that were measured on several starts."""

_AS_FACTOR_FROM = 2.0
_TOLD_FROM = 1.005
_DOUBT_FROM = 1.05  # what is certain may be small; a percent is not worth a doubt about all of it


def noise_text(comparison: ArmsComparison) -> str | None:
    """How far the baseline may be from itself in each metric, at the level where that is farthest, and where it is for
    certain, or between the only two starts; None if not measured.
    """
    worst = [max(of_metric, key=lambda each: each.factor) for of_metric in _by_metric(comparison.noise)]
    if not worst:
        return None
    parts = [
        f"{_distance(each.factor)} in {METRIC_LABELS[each.metric]} (at {asked(each.level)})"
        for each in worst
        if each.factor >= _TOLD_FROM
    ]
    little = [METRIC_LABELS[each.metric] for each in worst if each.factor < _TOLD_FROM]
    ways = [f"by up to {listed(parts)}"] if parts else []
    ways += [f"by less than {_TOLD_FROM - 1:.1%} in {listed(little)}"] if little else []
    text = (
        f"the baseline may differ from itself {' and '.join(ways)}; nothing smaller is claimed of that metric at such a"
        " level"
    )
    apart: dict[str, list[str]] = {}
    for of_metric in _by_metric([each for each in comparison.noise if each.differs]):
        levels = levels_text([each.level for each in of_metric])
        apart.setdefault(levels, []).append(METRIC_LABELS[of_metric[0].metric])
    if apart:
        where = "; ".join(f"{listed(labels)} at {levels}" for levels, labels in apart.items())
        text += (
            f". Its two starts differ in {where} by more than the requests within them do: something changed between"
            " them"
            if comparison.one_start
            else f". It differs for certain in {where}: something else changed between starts"
        )
    return text


def noise_doubt(comparison: ArmsComparison) -> Doubt | None:
    """That two starts of the baseline differ for certain, and by 5 % or more: in which metrics, at which levels, the
    worst as evidence. None where they do not.
    """
    seen = []
    for of_metric in _by_metric([each for each in comparison.noise if each.differs and _is_notable(each)]):
        worst = max(of_metric, key=lambda each: each.factor)
        ratio = worst.ratio
        example = "" if len(of_metric) == 1 else f" at {asked(worst.level)}"
        seen.append(
            (
                f"{levels_text([each.level for each in of_metric])} in {METRIC_LABELS[worst.metric]}",
                f"second start over first{example} {ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]",
            )
        )
    if not seen:
        return None
    return Doubt(
        severity=Severity.WARNING,
        kind=BASELINE_DIFFERS,
        advice="One server, started twice, is not the same there: what an arm shows in these metrics may be that, too."
        " Look for what changes between starts (a busy machine, heat, other load), and measure again.",
        seen=tuple(seen),
    )


def is_noise(comparison: ArmsComparison, level: ArmLevel, metric: str) -> bool:
    """Whether an arm is no farther from the baseline in this metric than the baseline may be from itself there."""
    again = None if comparison.again is None else comparison.again.gains.get(level.level)
    if again is None or level.gain is None or metric not in again.ratios or metric not in level.gain.ratios:
        return False
    itself, value = again.ratios[metric], level.gain.ratios[metric].value
    return max(value, 1 / value) <= max(itself.high, 1 / itself.low)


def unfinished_text(comparison: ArmsComparison) -> str | None:
    """How much of what was planned is there, None when all is: `8 of 48 runs are there`."""
    if comparison.complete:
        return None
    return f"{comparison.finished_runs} of {comparison.planned_runs} runs are there"


def uncompared_text(comparison: ArmsComparison) -> str | None:
    """Where too few requests can be compared, and how many it takes; None where that is nowhere."""
    places = [
        f"{printable(ladder.arm.label)} at {levels_text(few)}"
        for ladder in comparison.ladders
        if (few := uncompared_levels(ladder, Uncompared.FEW))
    ]
    if not places:
        return None
    least = MIN_PAIRED_REQUESTS["mean"]
    return (
        f"not compared, hence a dash: {'; '.join(places)}. A ratio of means takes {least} requests that have a TPOT in"
        " every run of both: give those levels more (num_requests_by_level)"
    )


def uncompared_why(comparison: ArmsComparison, level: float) -> str | None:
    """Why no arm is held against the baseline at a level; None where one is."""
    found = [each for ladder in comparison.arms for each in ladder.levels if each.level == level]
    gains = [each.gain for each in found if each.gain is not None]
    if any(gain.valid and gain.same_work and not gain.one_start for gain in gains):
        return None
    if any(not gain.valid for gain in gains):
        return "a measurement is invalid"
    if gains:
        return LONE_START if any(gain.same_work for gain in gains) else "answers differ in length"
    few = any(each.uncompared is Uncompared.FEW for each in found)
    return "too few requests can be compared" if few else "nothing is compared"


def uncompared_levels(ladder: ArmLadder, why: Uncompared) -> list[float]:
    """The levels of an arm that are not compared for that reason."""
    return [level.level for level in ladder.levels if level.uncompared is why]


def _by_metric(floors: Sequence[NoiseFloor]) -> list[list[NoiseFloor]]:
    found = ([each for each in floors if each.metric == metric] for metric in NOISE_METRICS)
    return [of_metric for of_metric in found if of_metric]


def _is_notable(floor: NoiseFloor) -> bool:
    return max(floor.ratio.value, 1 / floor.ratio.value) >= _DOUBT_FROM


def _distance(factor: float) -> str:
    return f"a factor of {factor:.1f}" if factor >= _AS_FACTOR_FROM else percent(factor - 1)
