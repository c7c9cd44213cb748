"""Logarithms of statistics, with the influence that each value has on them.

The influence of a value is the first-order change of the logarithm when that value gets a little more weight. Over a
sample the influences sum to about zero, and the variance of the logarithm is their mean square over n: what resampling
the values would give, without resampling. Two statistics of the same requests have the covariance of their influences.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.core.stats.quantiles import quantile

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatistic:
    """The logarithm of a statistic, and the influence of every value on it, in the order of the values."""

    log: float
    influences: Floats


def log_mean(values: Floats) -> LogStatistic:
    """Of values whose mean is above zero."""
    mean = float(values.mean())
    return LogStatistic(log=math.log(mean), influences=values / mean - 1)


def log_ratio_of_means(above: Floats, below: Floats) -> LogStatistic:
    """Of the mean of one value of each request over that of another, both above zero."""
    first, second = log_mean(above), log_mean(below)
    return LogStatistic(log=first.log - second.log, influences=first.influences - second.influences)


def log_quantile(values: Floats, p: float) -> LogStatistic:
    """Of the p-quantile, p between 0 and 1, of values above zero.

    How steeply the quantile rises with p is taken between the quantiles one standard deviation of p on either side
    (the reading of Woodruff, 1952).
    """
    ascending = np.sort(values)
    middle = quantile(ascending, p)
    step = math.sqrt(p * (1 - p) / len(values))
    low, high = max(0.0, p - step), min(1.0, p + step)
    slope = math.log(quantile(ascending, high) / quantile(ascending, low)) / (high - low)
    beyond = (values > middle).astype(np.float64)
    return LogStatistic(log=math.log(middle), influences=slope * (beyond - (1 - p)))
