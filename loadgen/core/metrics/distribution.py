"""A sample as the numbers that a report gives of it."""

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.summary import Distribution, QuantileCurve
from loadgen.core.stats.quantiles import finite, percentiles, quantile

CURVE_POINTS = 200
"""Most points of a curve."""


def distribution(ascending: NDArray[np.floating], *, missing: int, per_s: float = 1.0) -> Distribution:
    """Of values in ascending order, `per_s` of which make a second (1e9 for nanoseconds).

    What the sample cannot carry, and what is not finite, is None. Nothing lies outside min..max.
    """
    if not len(ascending):
        return Distribution(n=0, missing=missing)
    values = {name: None if value is None else value / per_s for name, value in percentiles(ascending).items()}
    low, high = float(ascending[0]), float(ascending[-1])
    mean = min(max(float(ascending.mean(dtype=np.float64)), low), high)
    ends = (finite(mean / per_s), finite(low / per_s), finite(high / per_s))
    return Distribution(n=len(ascending), missing=missing, mean=ends[0], min=ends[1], max=ends[2], **values)


def error_adjusted(ascending: NDArray[np.float64], *, errors: int, missing: int) -> Distribution:
    """The same with every failed or dropped request as +infinity: `n` counts them, and what falls on one is None."""
    return distribution(np.concatenate([ascending, np.full(errors, np.inf)]), missing=missing)


def curve(ascending: NDArray[np.floating], *, per_s: float = 1.0) -> QuantileCurve | None:
    """At most `CURVE_POINTS` points, denser towards 1 where tails are looked at; None for an empty sample.

    Up to that many values, every value is a point: the i-th of n at (i - 1) / (n - 1).
    """
    n = len(ascending)
    if n == 0:
        return None
    if n <= CURVE_POINTS:
        shares = np.arange(n) / (n - 1) if n > 1 else np.ones(1)
    else:
        tail = CURVE_POINTS // 2
        body = np.linspace(0.0, 0.9, CURVE_POINTS - tail, endpoint=False)
        shares = np.concatenate([body, 1.0 - np.geomspace(0.1, 1 / n, tail - 1), np.ones(1)])
    points = [float(share) for share in shares]
    return QuantileCurve(p=tuple(points), value_s=tuple(quantile(ascending, share) / per_s for share in points))
