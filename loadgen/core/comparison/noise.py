"""How far the baseline is from itself, metric by metric: what no effect of an arm is told from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from loadgen.core.comparison.ratio import Ratio
from loadgen.core.comparison.trade_off import BESIDE, HEADLINE
from loadgen.core.comparison.verdict import Claim, verdicts
from loadgen.core.stats.bootstrap import Estimate

NOISE_METRICS = (HEADLINE, *BESIDE)
"""Those of which something is claimed."""

ITSELF_ERROR_RATIO = 0.01
"""In so many experiments at most the baseline is said to differ from itself and does not: one more claim in a report
that says nothing false of arms in 95 % of experiments."""

METRIC_ERROR_RATIO = ITSELF_ERROR_RATIO / len(NOISE_METRICS)
"""The share of it that each metric has for all of its levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """One metric at one level: `ratio` is the baseline's second start over its first, whichever is better.

    `factor`, 1 or more, is the end of its interval that is farther from 1: nothing smaller is claimed of an arm in this
    metric at this level. `differs`: the two starts do, for certain, by all levels of the metric together.
    """

    metric: str
    level: float
    ratio: Estimate
    factor: float
    differs: bool


def noise_floors(noise: Sequence[Ratio], valid: Collection[float]) -> tuple[NoiseFloor, ...]:
    """In the order of `NOISE_METRICS`, then as given. `noise` has ratios of the baseline against itself.

    Of levels that are not among the `valid` ones no difference is told.
    """
    found = []
    for metric in NOISE_METRICS:
        of_metric = [each for each in noise if each.metric == metric]
        judged = verdicts([each for each in of_metric if each.level in valid], error_ratio=METRIC_ERROR_RATIO)
        apart = {each.level for each in judged if each.claim is not Claim.NO_DIFFERENCE}
        found += [
            NoiseFloor(
                metric=metric,
                level=each.level,
                ratio=each.estimate,
                factor=max(each.estimate.high, 1 / each.estimate.low),
                differs=each.level in apart,
            )
            for each in of_metric
        ]
    return tuple(found)
