"""Intervals over requests that need no resampling: requests are independent, what one holds need not be.

Both are the sandwich (Huber-White) variance with its usual small-sample factor, under Student's t.
"""

import math

import numpy as np
from numpy.typing import NDArray

from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.student import critical

Floats = NDArray[np.float64]

INTERVAL_CONFIDENCE_RATIO = 0.95
"""Confidence of the intervals."""

INTERVAL_MIN_REQUESTS = 10
"""Fewer requests have no interval."""


class RatioOfSums:
    """The ratio sum(parts) / sum(counts) over requests, kept as five sums: a request gives any number of parts."""

    __slots__ = ("_counts", "_counts_squared", "_parts", "_parts_squared", "_products", "n")

    def __init__(self) -> None:
        self.n = 0
        self._parts = self._counts = self._parts_squared = self._counts_squared = self._products = 0

    @property
    def count(self) -> int:
        """The sum of the counts."""
        return self._counts

    @property
    def value(self) -> float:
        """The ratio, of at least one request."""
        return self._parts / self._counts

    def add(self, part: int, count: int) -> None:
        """One request's sums, its count at least 1."""
        self.n += 1
        self._parts += part
        self._counts += count
        self._parts_squared += part * part
        self._counts_squared += count * count
        self._products += part * count

    def interval(self) -> tuple[float, float] | None:
        """Low and high; None with fewer than `INTERVAL_MIN_REQUESTS` requests."""
        if self.n < INTERVAL_MIN_REQUESTS:
            return None
        ratio = self.value
        squares = self._parts_squared - 2 * ratio * self._products + ratio**2 * self._counts_squared
        error = math.sqrt(max(0.0, squares) * self.n / (self.n - 1)) / self._counts
        half = critical(INTERVAL_CONFIDENCE_RATIO, self.n - 1) * error
        return ratio - half, ratio + half


def log_slope(x: Floats, y: Floats) -> tuple[Estimate, float] | None:
    """The least-squares slope of log y on log x with its interval, and the correlation of the two.

    All values are positive. None with fewer than `INTERVAL_MIN_REQUESTS` values or when all x or all y are the same.
    """
    n = len(x)
    if n < INTERVAL_MIN_REQUESTS or x.min() == x.max() or y.min() == y.max():
        return None
    across, up = np.log(x), np.log(y)
    across, up = across - across.mean(), up - up.mean()
    spread = float(across @ across)
    slope = float(across @ up) / spread
    rest = up - slope * across
    error = math.sqrt(float((across * rest) @ (across * rest)) * n / (n - 2)) / spread
    half = critical(INTERVAL_CONFIDENCE_RATIO, n - 2) * error
    estimate = Estimate(
        value=slope,
        low=slope - half,
        high=slope + half,
        confidence_ratio=INTERVAL_CONFIDENCE_RATIO,
        method="least squares on logarithms, robust t",
        n=n,
    )
    return estimate, float(across @ up) / math.sqrt(spread * float(up @ up))
