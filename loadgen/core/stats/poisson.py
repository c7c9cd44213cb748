"""Counts of rare events."""

import math


def at_least(count: int, mean: float) -> float:
    """P(X >= count) of a Poisson variable of that mean, which is above 0."""
    log_mean = math.log(mean)
    below = math.fsum(math.exp(k * log_mean - mean - math.lgamma(k + 1)) for k in range(count))
    return max(0.0, 1 - below)
