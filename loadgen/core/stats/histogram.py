"""A histogram as Prometheus has them: one set of values, counted by fixed bounds and by native, exponential buckets."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NATIVE_SCHEMA = 5
"""Native buckets grow by 2^(2^-5) = 1.022, so that a quantile read from one is off by about 1 % at most."""

_STEP = 1.25
_DIGITS = 3


def geometric_bounds(low: float, high: float) -> tuple[float, ...]:
    """Upper bounds from `low` to `high`, each 1.25 times the one before; three digits, as they stand in labels."""
    steps = math.ceil(math.log(high / low) / math.log(_STEP))
    rounded = (float(f"{low * _STEP**step:.{_DIGITS}g}") for step in range(steps))
    return (*(bound for bound in rounded if bound < high), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplar:
    """One value of a bucket, whose request it was, and when that ended (s, wall time)."""

    value: float
    request_id: str
    unix_s: float


class Histogram:
    """Counts of values of 0 or more. What it takes up is bounded by the range of the values, not by their number.

    `counts[i]` is of the values above `bounds[i - 1]` and up to `bounds[i]`; the last is of those above all bounds.
    `native[i]` is of the values above base^(i - 1) and up to base^i, where base = 2^(2^-NATIVE_SCHEMA); `zeros` of
    those that are 0. `exemplars` has the latest one of each bucket that got one.
    """

    __slots__ = ("bounds", "counts", "exemplars", "native", "sum", "zeros")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts: list[int] = [0] * (len(self.bounds) + 1)
        self.native: dict[int, int] = {}
        self.zeros = 0
        self.sum = 0.0
        self.exemplars: dict[int, Exemplar] = {}

    @property
    def count(self) -> int:
        """How many values were taken."""
        return sum(self.counts)

    def observe(self, values: NDArray[np.float64]) -> None:
        """Adds values."""
        if not len(values):
            return
        self.sum += float(values.sum())
        places, counts = np.unique(np.searchsorted(self.bounds, values), return_counts=True)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            self.counts[place] += count
        positive = values[values > 0]
        self.zeros += len(values) - len(positive)
        exponents = np.ceil(np.log2(positive) * 2**NATIVE_SCHEMA).astype(np.int64)
        for exponent, count in zip(
            *(found.tolist() for found in np.unique(exponents, return_counts=True)), strict=True
        ):
            self.native[exponent] = self.native.get(exponent, 0) + count

    def mark(self, exemplar: Exemplar) -> None:
        """Keeps one of the values that were added as the example of its bucket."""
        self.exemplars[bisect_left(self.bounds, exemplar.value)] = exemplar

    def add(self, other: "Histogram") -> None:
        """Adds what another one of the same bounds has counted; exemplars stay behind."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        for exponent, count in other.native.items():
            self.native[exponent] = self.native.get(exponent, 0) + count
        self.zeros += other.zeros
        self.sum += other.sum

    def as_counted(self) -> "Histogram":
        """Its classic buckets as they are now."""
        copied = Histogram(self.bounds)
        copied.counts, copied.sum = list(self.counts), self.sum
        return copied
