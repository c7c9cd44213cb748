"""TensorRT-LLM's iteration statistics (`/metrics`, JSON): a queue that reading empties, added up into counters.

Fields are those of `IterationStats` in `cpp/include/tensorrt_llm/executor/types.h`. There must be no other reader: what
it takes is missing here, and as iteration numbers may have gaps of their own, the loss cannot be told. With
data-parallel attention each iteration comes once a rank, with the first rank's figures of speculation in all of them:
the rows of the first rank alone are taken. Queue times are those of requests taken up, not of requests that ended.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec

from loadgen.core.server.sample import Counters, Gauges, ServerSample

_SUMS: dict[str, tuple[tuple[str, ...], float]] = {
    "finished_requests": (("numCompletedRequests",), 1.0),
    "timed_requests": (("numNewActiveRequests",), 1.0),
    "queue_s": (("newActiveRequestsQueueLatencyMS",), 1e-3),
    "decode_steps": (("inflightBatchingStats", "numGenRequests"), 1.0),
    "drafts": (("specDecodingStats", "numRequestsWithDraftTokens"), 1.0),
    "drafted_tokens": (("specDecodingStats", "numDraftTokens"), 1.0),
    "accepted_tokens": (("specDecodingStats", "numAcceptedTokens"), 1.0),
}
"""Of each counter: where its increment is in an iteration, and how many of our units one of its is."""


_MOST = 1e18
"""A number from here on is no count; a longer integer would not even go into a float."""


@dataclass(slots=True)
class IterationTotals:
    """Adds up the iterations that each reading takes out of the server's queue."""

    _sums: dict[str, float] = field(default_factory=dict)
    _last_iteration: int = 0
    _incomplete: bool = False

    def add(self, body: bytes) -> ServerSample:
        """The totals with this reading's iterations, and the state after the last of them.

        Iterations that count from the start again are of a server started anew: that reading has no counters, so that
        no window reaches across it. Raises ValueError for what is no list of iterations; the totals stay as they are.
        """
        rows = [row for row in _rows(body) if not row.get("attentionDpRank")]
        numbers = [_iteration(row) for row in rows]
        gauges = _gauges(rows[-1] if rows else {})
        anew = any(after < before for before, after in pairwise([self._last_iteration, *numbers]))
        self._last_iteration = numbers[-1] if numbers else self._last_iteration
        if anew:
            self._sums, self._incomplete = {}, False
            return ServerSample(engine="0", counters=Counters(), gauges=gauges)
        self._add("iterations", float(len(rows)))
        for row in rows:
            for name, (path, unit) in _SUMS.items():
                if (value := _at(row, path)) is not None:
                    self._add(name, value * unit)
        if self._incomplete:
            return ServerSample(engine="0", counters=Counters(), gauges=gauges, gaps=tuple(self._sums))
        totals: dict[str, Any] = self._sums
        return ServerSample(engine="0", counters=Counters(**totals), gauges=gauges)

    def miss(self) -> None:
        """A reading failed, which may have taken iterations away: from here on the totals are not known."""
        self._incomplete = bool(self._sums)

    def _add(self, name: str, value: float) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + value


def _rows(body: bytes) -> list[dict[str, Any]]:
    try:
        return msgspec.json.decode(body, type=list[dict[str, Any]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise ValueError("the page is no JSON list of iterations") from fault


def _iteration(row: dict[str, Any]) -> int:
    number = row.get("iter")
    if not isinstance(number, int):
        raise ValueError("an iteration has no number")
    return number


def _at(row: dict[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = row
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, int | float) and abs(value) < _MOST else None


def _gauges(row: dict[str, Any]) -> Gauges:
    used, most = _at(row, ("kvCacheStats", "usedNumBlocks")), _at(row, ("kvCacheStats", "maxNumBlocks"))
    return Gauges(
        running_requests=_at(row, ("numActiveRequests",)),
        waiting_requests=_at(row, ("numQueuedRequests",)),
        kv_used_ratio=used / most if used is not None and most else None,
        prefix_hit_ratio=_at(row, ("kvCacheStats", "cacheHitRate")),
        acceptance_length=_at(row, ("specDecodingStats", "acceptanceLength")),
    )
