"""Student's t distribution."""

import math
from functools import lru_cache

import numpy as np

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_WIDTHS = 9.0
"""So many standard deviations from the middle nothing is left that a float could hold."""


def inside_ratio(t: float, degrees: float) -> float:
    """P(|T| < t) for t of 0 or more and at least one degree of freedom, which need not be whole.

    With t = sqrt(degrees) tan(a) it is the integral of cos(x) ** (degrees - 1) over [-a, a], over that of its whole
    range; by Gauss-Legendre.
    """
    angle = math.atan(t / math.sqrt(degrees))
    if degrees > 1:
        angle = min(angle, _WIDTHS / math.sqrt(degrees - 1))
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)
    half = angle / 2 * float(_WEIGHTS @ np.cos(angle * (_NODES + 1) / 2) ** (degrees - 1))
    return min(1.0, 2 * scale * half)


@lru_cache(maxsize=256)
def critical(confidence_ratio: float, degrees: float) -> float:
    """The t with P(|T| < t) = `confidence_ratio`, which lies between 0 and 1, both excluded; by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(42):
        middle = (low + high) / 2
        if inside_ratio(math.sqrt(degrees) * math.tan(middle), degrees) < confidence_ratio:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)
