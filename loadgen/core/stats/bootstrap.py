"""Intervals by resampling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELLS = 2_000_000
"""Values resampled at a time: bounds the memory, not the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its interval: in `confidence_ratio` of repetitions such an interval holds the true value."""

    value: float
    low: float
    high: float
    confidence_ratio: float
    method: str
    n: int


def bootstrap(
    samples: Sequence[Floats],
    statistic: Callable[..., Floats],
    rng: np.random.Generator,
    *,
    confidence_ratio: float = 0.95,
    resamples: int = 1000,
    block: int | None = None,
) -> Estimate:
    """Percentile bootstrap of `statistic(*samples)`, each sample resampled on its own.

    `statistic` takes arrays whose last axis is the sample and reduces that axis. Values are in the order in which they
    were measured and are drawn in circular blocks of `block` neighbours (default: the cube root of the sample's size),
    since the latencies of one run follow each other's; `block=1` draws single values. Every sample needs a value.
    """
    draws = []
    largest = max(len(sample) for sample in samples)
    at_once = max(1, CELLS // largest)
    for begin in range(0, resamples, at_once):
        rows = min(at_once, resamples - begin)
        draws.append(statistic(*(sample[_places(len(sample), rows, block, rng)] for sample in samples)))
    tail = (1.0 - confidence_ratio) / 2.0
    low, high = np.quantile(np.concatenate(draws), [tail, 1.0 - tail])
    return Estimate(
        value=float(statistic(*samples)),
        low=float(low),
        high=float(high),
        confidence_ratio=confidence_ratio,
        method="block bootstrap, percentile" if block != 1 else "bootstrap, percentile",
        n=sum(len(sample) for sample in samples),
    )


def _places(n: int, rows: int, block: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of `rows` resamples of n values, in circular blocks."""
    length = max(1, round(n ** (1 / 3))) if block is None else block
    starts = rng.integers(0, n, size=(rows, -(-n // length)))
    places: NDArray[np.int64] = (starts[:, :, None] + np.arange(length)).reshape(rows, -1)[:, :n] % n
    return places


def median(sample: Floats) -> Floats:
    """Of the last axis."""
    return np.asarray(np.median(sample, axis=-1))


def median_ratio(first: Floats, second: Floats) -> Floats:
    """Median of `first` over median of `second`, along the last axis; the second's median must not be zero."""
    return np.asarray(np.median(first, axis=-1) / np.median(second, axis=-1))
