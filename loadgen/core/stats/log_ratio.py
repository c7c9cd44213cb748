"""The ratio of two arms that were measured on the same requests over several starts of the server."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.influence import LogStatistic
from loadgen.core.stats.student import critical

METHOD = "variance between starts and between requests, t"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRatio:
    """The logarithm of a ratio with its variance in two parts, each with the degrees of freedom that it was found with.

    `start_variance` is what differs from one start of the server to the next, chance from request to request included;
    None when there was one start. `request_variance` is what the choice of the requests adds: they are the same at
    every start, so more starts do not average it out. `n` is the number of requests.
    """

    log: float
    start_variance: float | None
    start_degrees: int
    request_variance: float
    n: int

    def inverse(self) -> "LogRatio":
        """Baseline over arm."""
        return replace(self, log=-self.log)

    def times(self, factor: float) -> "LogRatio":
        """The ratio times a known number above zero."""
        return replace(self, log=self.log + math.log(factor))

    def estimate(self, confidence_ratio: float = 0.95) -> Estimate:
        """The ratio with its interval.

        The interval is symmetric in the logarithm. Its critical value is the mean of those of the two parts weighted by
        their variances (Cochran, 1964).
        """
        start_variance = self.start_variance or 0.0
        variance = start_variance + self.request_variance
        half = 0.0
        if variance > 0:
            t = critical(confidence_ratio, self.n - 1) * self.request_variance / variance
            if start_variance > 0:
                t += critical(confidence_ratio, self.start_degrees) * start_variance / variance
            half = t * math.sqrt(variance)
        return Estimate(
            value=math.exp(self.log),
            low=math.exp(self.log - half),
            high=math.exp(self.log + half),
            confidence_ratio=confidence_ratio,
            method=METHOD,
            n=self.n,
        )


def log_ratio(baseline: Sequence[LogStatistic], arm: Sequence[LogStatistic]) -> LogRatio:
    """arm / baseline, as geometric means over the starts: one statistic a start, all of the same requests.

    Needs at least two requests, and as many starts of one arm as of the other. With one start the variance is that
    between requests alone. With more, the statistics of either arm scatter around their mean by what changes from start
    to start: pooled over both arms, since few starts tell little, it gives the first part. The second is the covariance
    that two starts of one arm have beyond that with the other arm: what requests do to one arm and not to the other.
    """
    logs = np.array([[start.log for start in side] for side in (baseline, arm)])
    influences = np.array([[start.influences for start in side] for side in (baseline, arm)])
    starts, n = influences.shape[1:]
    difference = float(logs[1].mean() - logs[0].mean())
    if starts == 1:
        own = influences[1, 0] - influences[0, 0]
        variance = float(own @ own) / (n * (n - 1))
        return LogRatio(log=difference, start_variance=None, start_degrees=0, request_variance=variance, n=n)
    sums = influences.sum(axis=1)
    between_starts = (np.vecdot(sums, sums) - np.vecdot(influences, influences).sum(axis=1)) / (starts * (starts - 1))
    between_arms = float(sums[0] @ sums[1]) / starts**2
    return LogRatio(
        log=difference,
        start_variance=float(logs.var(axis=1, ddof=1).mean()) * 2 / starts,
        start_degrees=2 * (starts - 1),
        request_variance=max(0.0, float(between_starts.sum()) - 2 * between_arms) / (n * (n - 1)),
        n=n,
    )
