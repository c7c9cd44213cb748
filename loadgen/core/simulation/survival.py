"""How many draft tokens a step accepts, as survival rates: r_i is the share of drafts whose first i tokens were all
accepted. Exact for chains of drafts: the mean acceptance length with k draft tokens is 1 + r_1 + ... + r_k.

Requests differ and predictable stretches follow one another, yet the rates stay what they are: a step's luck is one
standard normal number, of which a share belongs to the request and a share to the stretch of text, and i tokens are
accepted when it exceeds -Phi^-1(r_i).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

_NORMAL = NormalDist()
_CLASSES = 15
_ALWAYS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """Survival rates r_1 >= r_2 >= ..., each 0..1; beyond the last one nothing is accepted.

    `request_share` and `stretch_share` are shares of the variance of a step's luck: how much of it belongs to the
    request as a whole, and how much to a stretch of about `stretch_steps` steps. Raises ValueError for anything else.
    """

    rates: tuple[float, ...]
    request_share: float = 0.0
    stretch_share: float = 0.0
    stretch_steps: float = 8.0

    def __post_init__(self) -> None:
        before = 1.0
        for position, rate in enumerate(self.rates, start=1):
            if not 0 <= rate <= 1:
                raise ValueError(f"expected acceptance rates between 0 and 1, got {rate:g} at position {position}")
            if rate > before:
                raise ValueError(
                    "expected acceptance rates that do not rise, since a token counts only when all before it were"
                    f" accepted; got {rate:g} after {before:g} at position {position}"
                )
            before = rate
        if min(self.request_share, self.stretch_share) < 0 or self.request_share + self.stretch_share >= 1:
            raise ValueError("expected shares of variance of 0 or more that together stay below 1")
        if self.stretch_steps <= 0:
            raise ValueError(f"expected a stretch of more than 0 steps, got {self.stretch_steps:g}")

    def mean_length(self, draft_tokens: int) -> float:
        """1 + r_1 + ... + r_k: the mean over requests of tokens a step, the bonus token included."""
        return 1 + math.fsum(self.rates[:draft_tokens])

    def pooled_length(self, draft_tokens: int) -> float:
        """Tokens a step over all steps, as a server's counters show: the harmonic mean over requests of equal length.

        At or below `mean_length`, because requests of little acceptance take more steps; equal without request share.
        """
        return 1 / math.fsum(weight / length for weight, length in self.lengths(draft_tokens))

    def lengths(self, draft_tokens: int) -> list[tuple[float, float]]:
        """Classes of requests as (share of requests, tokens a step); the shares sum to 1."""
        if not self.request_share:
            return [(1.0, self.mean_length(draft_tokens))]
        own = math.sqrt(self.request_share)
        rest = math.sqrt(1 - self.request_share)
        points = [_point(rate) for rate in self.rates[:draft_tokens]]
        return [
            (weight, 1 + math.fsum(_NORMAL.cdf((point + own * z) / rest) for point in points))
            for weight, z in normal_classes()
        ]

    def thresholds(self, draft_tokens: int) -> np.ndarray:
        """Ascending: a step accepts as many draft tokens as there are thresholds below its luck."""
        rates = (*self.rates[:draft_tokens], *([0.0] * (draft_tokens - len(self.rates))))
        return np.array([-_point(rate) for rate in rates])


def from_conditional(rates: Sequence[float], depth: int) -> tuple[float, ...]:
    """Survival rates to `depth` of the acceptance of each position given all before it; the last one is repeated."""
    survivors: list[float] = []
    alive = 1.0
    for position in range(depth):
        alive *= rates[min(position, len(rates) - 1)]
        survivors.append(alive)
    return tuple(survivors)


def forced(length: float, draft_tokens: int) -> tuple[float, ...]:
    """Survival rates of a forced mean acceptance length with the least variance: as many whole tokens as it holds,
    then the fraction, then 0. 2.8 with three draft tokens is 1, 0.8, 0: vLLM's schedule for a synthetic length.

    Raises ValueError outside of 1 .. draft_tokens + 1.
    """
    if not 1 <= length <= draft_tokens + 1:
        raise ValueError(
            f"expected an acceptance length from 1 to {draft_tokens + 1} with {draft_tokens} draft tokens,"
            f" got {length:g}"
        )
    return tuple(min(1.0, max(0.0, length - 1 - position)) for position in range(draft_tokens))


@cache
def normal_classes() -> tuple[tuple[float, float], ...]:
    """A standard normal in a few classes, as (weight, value): Gauss-Hermite quadrature, weights sum to 1."""
    values, weights = np.polynomial.hermite_e.hermegauss(_CLASSES)
    total = float(weights.sum())
    return tuple((weight / total, value) for value, weight in zip(values.tolist(), weights.tolist(), strict=True))


def _point(rate: float) -> float:
    """Phi^-1(rate), with finite stand-ins for certainty."""
    if rate >= 1:
        return _ALWAYS
    return -_ALWAYS if rate <= 0 else _NORMAL.inv_cdf(rate)
