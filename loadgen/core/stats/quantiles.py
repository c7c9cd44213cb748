"""Percentiles: one estimator for every report, and how many values each percentile needs.

The estimator is linear interpolation between order statistics (type 7 of Hyndman and Fan, numpy's default): for n
values in ascending order the p-quantile lies at position p * (n - 1). A percentile is given from the sample size on
that puts at least about one value beyond it.
"""

import math

import numpy as np
from numpy.typing import NDArray

ESTIMATOR = "linear (type 7)"

PERCENTILES: dict[str, tuple[float, int]] = {
    "p50": (0.5, 1),
    "p75": (0.75, 4),
    "p90": (0.9, 10),
    "p95": (0.95, 20),
    "p99": (0.99, 100),
    "p99_9": (0.999, 1000),
}
"""Name to (share, smallest sample that carries it)."""


def quantile(ascending: NDArray[np.floating], p: float) -> float:
    """The p-quantile, p in 0..1, of at least one value in ascending order.

    Values may be +infinity (a request that never got an answer); the result is then +infinity as soon as the
    interpolation touches one.
    """
    position = p * (len(ascending) - 1)
    below = math.floor(position)
    low = float(ascending[below])
    share = position - below
    if share == 0.0:
        return low
    high = float(ascending[below + 1])
    return low if high == low else min(high, low + share * (high - low))


def percentiles(ascending: NDArray[np.floating]) -> dict[str, float | None]:
    """Every percentile of `PERCENTILES`; None where the sample is too small or the value is not finite."""
    n = len(ascending)
    return {name: finite(quantile(ascending, p)) if n >= least else None for name, (p, least) in PERCENTILES.items()}


def finite(value: float) -> float | None:
    """The value, or None for an infinity or NaN: a report holds no such number."""
    return value if math.isfinite(value) else None
