"""Arrival processes: seeded draws to due offsets, in nanoseconds after the first arrival."""

import math
from collections.abc import Iterator

import numpy as np

from loadgen.core.units import NS_PER_S

LOWEST_RATE_RPS, HIGHEST_RATE_RPS = 1e-6, 1e5
"""From one request in twelve days to more than one process can send."""

LOWEST_BURSTINESS = 1e-3
"""Below it nearly all gaps of any sample are zero, and their mean says nothing of the rate."""

_CHUNK = 1024


def constant_offsets(rate_rps: float) -> Iterator[int]:
    """Offsets of a constant rate: arrival i at i / rate exactly, so rounding never adds up."""
    _check_rate(rate_rps)
    index = 0
    while True:
        yield round(index * NS_PER_S / rate_rps)
        index += 1


def gamma_offsets(rate_rps: float, burstiness: float, rng: np.random.Generator) -> Iterator[int]:
    """Offsets whose gaps are gamma distributed with shape `burstiness` and mean 1 / rate.

    Shape 1 is a Poisson process, below 1 is burstier (coefficient of variation 1 / sqrt(shape)), infinity is constant
    spacing. The drawn total is not rescaled: a plan's own rate differs from the asked one as chance has it.
    Raises ValueError for a rate or shape out of bounds.
    """
    _check_rate(rate_rps)
    if not burstiness >= LOWEST_BURSTINESS:
        expected = f"expected a burstiness of at least {LOWEST_BURSTINESS:g} (1 is Poisson, inf is constant)"
        raise ValueError(f"{expected}, got {burstiness}")
    if math.isinf(burstiness):
        yield from constant_offsets(rate_rps)
    elapsed_s = 0.0
    yield 0
    while True:
        for gap_s in rng.gamma(burstiness, 1.0 / (rate_rps * burstiness), size=_CHUNK).tolist():
            elapsed_s += gap_s
            yield round(elapsed_s * NS_PER_S)


def _check_rate(rate_rps: float) -> None:
    if not LOWEST_RATE_RPS <= rate_rps <= HIGHEST_RATE_RPS:
        expected = f"expected a rate from {LOWEST_RATE_RPS:g} to {HIGHEST_RATE_RPS:g} requests per second"
        raise ValueError(f"{expected}, got {rate_rps}")
