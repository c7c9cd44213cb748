"""A share of yes among yes and no, with its interval."""

import math
from statistics import NormalDist

CONFIDENCE_RATIO = 0.95
"""Confidence of the intervals, half of the rest on either side."""

NORMAL_QUANTILE = NormalDist().inv_cdf((1 + CONFIDENCE_RATIO) / 2)
"""So many standard deviations to either side a normal value lies with that confidence."""


def wilson(ratio: float, n: float) -> tuple[float, float]:
    """The interval of a share seen among `n` independent ones, n above 0, which need not be whole.

    By Wilson (1927), which stays within 0..1 and keeps its promise near both ends, where the usual interval has none.
    """
    shrink = 1 + NORMAL_QUANTILE**2 / n
    centre = (ratio + NORMAL_QUANTILE**2 / (2 * n)) / shrink
    half = NORMAL_QUANTILE / shrink * math.sqrt(ratio * (1 - ratio) / n + (NORMAL_QUANTILE / (2 * n)) ** 2)
    return max(0.0, centre - half), min(1.0, centre + half)


def fewest_for(ratio: float) -> int:
    """How many, all of them yes, it takes until the interval lies at or above a share, which is below 1."""
    return math.ceil(NORMAL_QUANTILE**2 * ratio / (1 - ratio) - 1e-9)
