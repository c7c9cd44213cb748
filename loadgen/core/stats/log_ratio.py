"""The ratio of two arms that were measured on the same requests over several starts of the server."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.influence import LogStatistic
from loadgen.core.stats.student import critical

METHOD = "variance between starts and between requests, t"

FARTHEST_RATIO = 1e6
"""An end of an interval that is farther from 1 than so many times is no bound, and is given as so many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRatio:
    """The logarithm of a ratio with its variance in two parts, and the degrees of freedom of their sum.

    `start_variance` is what differs from one start of the server to the next, chance from answer to answer included;
    None when there was one start. `request_variance` is what the choice of the requests adds: they are the same at
    every start, so more starts do not average it out. `n` is the number of requests.
    """

    log: float
    start_variance: float | None
    request_variance: float
    degrees: float
    n: int

    def inverse(self) -> "LogRatio":
        """Baseline over arm."""
        return replace(self, log=-self.log)

    def times(self, factor: float) -> "LogRatio":
        """The ratio times a known number above zero."""
        return replace(self, log=self.log + math.log(factor))

    def estimate(self, confidence_ratio: float = 0.95) -> Estimate:
        """The ratio with its interval, which is symmetric in the logarithm.

        Two starts that have nothing in common leave one degree of freedom, and ends beyond any float: an end stops at
        `FARTHEST_RATIO`, or at the value where that is farther out.
        """
        variance = (self.start_variance or 0.0) + self.request_variance
        half = critical(confidence_ratio, self.degrees) * math.sqrt(variance)
        farthest = max(math.log(FARTHEST_RATIO), abs(self.log))
        return Estimate(
            value=math.exp(self.log),
            low=math.exp(max(self.log - half, -farthest)),
            high=math.exp(min(self.log + half, farthest)),
            confidence_ratio=confidence_ratio,
            method=METHOD,
            n=self.n,
        )


def log_ratio(baseline: Sequence[LogStatistic], arm: Sequence[LogStatistic]) -> LogRatio:
    """arm / baseline, as geometric means over the starts: one statistic a start, all of the same requests.

    Needs at least two requests, and as many starts of one arm as of the other. With one start the variance is that
    between requests alone. With more, the statistics of each arm scatter around their mean by what changes from start
    to start. Beside it stands the covariance that two starts of one arm have beyond that with the other arm: what
    requests do to one arm and not to the other. The degrees of freedom are Welch's and Satterthwaite's for the sum of
    the three.
    """
    logs = np.array([[start.log for start in side] for side in (baseline, arm)])
    influences = np.array([[start.influences for start in side] for side in (baseline, arm)])
    starts, n = influences.shape[1:]
    difference = float(logs[1].mean() - logs[0].mean())
    if starts == 1:
        own = influences[1, 0] - influences[0, 0]
        variance = float(own @ own) / (n * (n - 1))
        return LogRatio(log=difference, start_variance=None, request_variance=variance, degrees=n - 1, n=n)
    sums = influences.sum(axis=1)
    between_starts = (np.vecdot(sums, sums) - np.vecdot(influences, influences).sum(axis=1)) / (starts * (starts - 1))
    between_arms = float(sums[0] @ sums[1]) / starts**2
    request_variance = max(0.0, float(between_starts.sum()) - 2 * between_arms) / (n * (n - 1))
    first, second = (logs.var(axis=1, ddof=1) / starts).tolist()
    return LogRatio(
        log=difference,
        start_variance=first + second,
        request_variance=request_variance,
        degrees=_degrees((first, starts - 1), (second, starts - 1), (request_variance, n - 1)),
        n=n,
    )


def independent_log_ratio(baseline: LogStatistic, arm: LogStatistic) -> LogRatio:
    """arm / baseline of one start of each, measured on requests of their own; at least two of each.

    The variance is the sum of the two, with Welch's and Satterthwaite's degrees of freedom; `n` counts both.
    """
    sizes = [len(side.influences) for side in (baseline, arm)]
    first, second = (
        float(side.influences @ side.influences) / (n * (n - 1)) for side, n in zip((baseline, arm), sizes, strict=True)
    )
    return LogRatio(
        log=arm.log - baseline.log,
        start_variance=None,
        request_variance=first + second,
        degrees=_degrees((first, sizes[0] - 1), (second, sizes[1] - 1)),
        n=sum(sizes),
    )


def _degrees(*parts: tuple[float, int]) -> float:
    """Of a sum of variances, each known with its own degrees of freedom; those of the last when nothing varies."""
    total = sum(variance for variance, _ in parts)
    if total == 0:
        return parts[-1][1]
    return 1 / sum((variance / total) ** 2 / degrees for variance, degrees in parts)
