"""Acceptance request by request, and how a request's time per output token goes with it."""

from array import array

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.distribution import distribution
from loadgen.core.metrics.per_request import tpot_s
from loadgen.core.metrics.summary import Distribution, RequestAcceptance, RequestPoint, TpotByAcceptance
from loadgen.core.record import RequestRecord
from loadgen.core.speculation.evidence import Evidence
from loadgen.core.stats.robust import log_slope

POINTS_MOST = 500
"""Most points of the scatter plot."""


class PerRequest:
    """Takes requests one by one and keeps three numbers of each."""

    def __init__(self) -> None:
        self._lengths, self._tokens_per_step, self._tpots_s = array("d"), array("d"), array("d")

    def observe(self, record: RequestRecord, told: Evidence) -> None:
        """Adds one completed request."""
        self._lengths.append(_number(None if told.block is None else told.block.length))
        self._tokens_per_step.append(_number(tokens_per_step(told)))
        self._tpots_s.append(_number(tpot_s(record)))

    def distributions(self) -> RequestAcceptance | None:
        """None when no request has a value."""
        lengths, speeds = _distribution(self._lengths), _distribution(self._tokens_per_step)
        if not lengths.n and not speeds.n:
            return None
        return RequestAcceptance(acceptance_length=lengths, tokens_per_step=speeds)

    def tpot(self) -> TpotByAcceptance | None:
        """None when no request has both numbers."""
        both = np.array([self._tokens_per_step, self._tpots_s], dtype=np.float64)
        both = both[:, ~np.isnan(both).any(axis=0)]
        if not both.shape[1]:
            return None
        sizes, tpots = both[:, np.lexsort(both[::-1])]
        slope, correlation = log_slope(sizes, tpots) or (None, None)
        chosen = np.unique(np.linspace(0, len(sizes) - 1, min(POINTS_MOST, len(sizes))).round().astype(np.int64))
        points = zip(sizes[chosen].tolist(), tpots[chosen].tolist(), strict=True)
        return TpotByAcceptance(
            n=len(sizes),
            slope=slope,
            correlation=correlation,
            points=tuple(RequestPoint(tokens_per_step=size, tpot_s=tpot) for size, tpot in points),
        )


def tokens_per_step(told: Evidence) -> float | None:
    """Of one request, over all its decode steps.

    From its events when each of them is a step; else, of a server that counts accepted tokens and no steps, decoded
    tokens / (decoded - accepted), since every step adds one token of its own. None without either.
    """
    if told.steps is not None and not told.oversize_events:
        return told.steps.length
    if told.block is None or told.block.steps is not None:
        return None
    return without_steps(told.decode_tokens, told.block.accepted_tokens)


def without_steps(decode_tokens: int | None, accepted_tokens: int | None) -> float | None:
    """Tokens a step where only tokens are counted; None when one of them is not known or they leave no step."""
    if decode_tokens is None or accepted_tokens is None or decode_tokens <= accepted_tokens:
        return None
    return decode_tokens / (decode_tokens - accepted_tokens)


def _distribution(values: "array[float]") -> Distribution:
    column: NDArray[np.float64] = np.array(values, dtype=np.float64)
    known = np.sort(column[~np.isnan(column)])
    return distribution(known, missing=len(column) - len(known))


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
