"""A share of yes among yes and no, with its interval."""

import math
from statistics import NormalDist

CONFIDENCE_RATIO = 0.95
"""Confidence of the intervals, half of the rest on either side."""

_Z = NormalDist().inv_cdf((1 + CONFIDENCE_RATIO) / 2)


def wilson(ratio: float, n: float) -> tuple[float, float]:
    """The interval of a share seen among `n` independent ones, n above 0, which need not be whole.

    By Wilson (1927), which stays within 0..1 and keeps its promise near both ends, where the usual interval has none.
    """
    shrink = 1 + _Z**2 / n
    centre = (ratio + _Z**2 / (2 * n)) / shrink
    half = _Z / shrink * math.sqrt(ratio * (1 - ratio) / n + (_Z / (2 * n)) ** 2)
    return max(0.0, centre - half), min(1.0, centre + half)


def fewest_for(ratio: float) -> int:
    """How many, all of them yes, it takes until the interval lies at or above a share, which is below 1."""
    return math.ceil(_Z**2 * ratio / (1 - ratio) - 1e-9)
