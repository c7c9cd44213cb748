"""Whether the beginning of a run differs from the rest: warm-up that was measured, or a load that does not settle."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.core.stats.bootstrap import Estimate, bootstrap, median_ratio

Floats = NDArray[np.float64]

DRIFT_Z = 3.5
"""The rank statistic of the best cut must be at least this far from zero, in standard deviations."""

DRIFT_RATIO = 1.1
"""The medians before and after the cut must differ at least this much, with their whole interval beyond it."""

DRIFT_CONFIDENCE_RATIO = 0.99
"""Confidence of that interval."""

DRIFT_MIN_REQUESTS = 30
"""Fewer requests are not tested."""

DRIFT_MIN_PART = 5
"""The beginning is at least this many requests, and at most half of them."""

RESAMPLED_MOST = 2000
"""Each part is thinned evenly to this many values before it is resampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The first `first_n` values differ from the rest: `ratio` is median(first) / median(rest)."""

    first_n: int
    ratio: Estimate


def drift(values: Floats, rng: np.random.Generator) -> Drift | None:
    """Where and by how much the beginning differs, for positive values in the order of sending; None when it does not.

    Every cut is tried with a Mann-Whitney statistic on ranks, as in Pettitt's change-point test (1979) but standardised
    for each cut so that a short beginning can be found; ranks, so that one slow request decides nothing. Neighbouring
    latencies resemble each other, which would make chance look like change: the statistic of the best cut is divided
    by sqrt((1 + r) / (1 - r)), r being the lag-1 autocorrelation of the ranks around their two means. What passes
    `DRIFT_Z` must also differ in size: the bootstrapped interval of the ratio of medians lies beyond `DRIFT_RATIO`.
    """
    if len(values) < DRIFT_MIN_REQUESTS:
        return None
    cut, z = _best_cut(_ranks(values))
    if abs(z) < DRIFT_Z:
        return None
    parts = (_thinned(values[:cut]), _thinned(values[cut:]))
    ratio = bootstrap(parts, median_ratio, rng, confidence_ratio=DRIFT_CONFIDENCE_RATIO)
    return Drift(first_n=cut, ratio=ratio) if ratio.low > DRIFT_RATIO or ratio.high < 1 / DRIFT_RATIO else None


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[place]
    return ranks


def _best_cut(ranks: Floats) -> tuple[int, float]:
    """The cut with the largest standardised difference of rank sums, and that difference, neighbours allowed for."""
    n = len(ranks)
    variance = ranks.var()
    if variance == 0:
        return DRIFT_MIN_PART, 0.0
    cuts = np.arange(DRIFT_MIN_PART, n // 2 + 1)
    surplus = np.cumsum(ranks)[cuts - 1] - cuts * (n + 1) / 2
    z = surplus / np.sqrt(cuts * (n - cuts) / (n - 1) * variance)
    best = int(np.argmax(np.abs(z)))
    cut = int(cuts[best])
    around = np.concatenate([ranks[:cut] - ranks[:cut].mean(), ranks[cut:] - ranks[cut:].mean()])
    spread = float(around @ around)
    r = min(max(float(around[1:] @ around[:-1]) / spread, 0.0), 0.99) if spread > 0 else 0.0
    return cut, float(z[best]) / ((1 + r) / (1 - r)) ** 0.5


def _thinned(values: Floats) -> Floats:
    return values[:: -(-len(values) // RESAMPLED_MOST)]
