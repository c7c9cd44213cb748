"""When output tokens arrived: counted by the span in which their event came in, not by the request's end."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.per_request import streamed_tokens
from loadgen.core.record import Outcome, RequestRecord

Floats = NDArray[np.float64]


class Arrivals:
    """Tokens that arrived in each bin of `edges_ns` (ascending) and in each of some spans [start, end).

    Completed and cancelled requests count, failed ones do not: theirs is no output that anyone got. Tokens of an event
    are as the server told; where it counted only the whole answer, the count is spread evenly over the events. An
    answer without any count adds nothing; `known` says whether one had a count.
    """

    def __init__(self, edges_ns: Floats, spans_ns: Iterable[tuple[float, float]]) -> None:
        self._edges_ns = edges_ns
        self._spans_ns = tuple(spans_ns)
        self.per_bin = np.zeros(max(0, len(edges_ns) - 1))
        self.per_span = [0.0] * len(self._spans_ns)
        self.known = False

    def observe(self, record: RequestRecord) -> None:
        """Adds one record of any phase."""
        if record.outcome not in (Outcome.COMPLETED, Outcome.CANCELLED):
            return
        tokens = streamed_tokens(record)
        if tokens is None or tokens < 0:
            return
        self.known = True
        times = record.event_ns or (record.last_ns,)
        if times[0] is None:
            return
        arrived = np.array(times, dtype=np.float64)
        cumulated = np.zeros(len(arrived) + 1)
        if record.event_tokens is not None and len(record.event_tokens) == len(arrived):
            np.cumsum(record.event_tokens, out=cumulated[1:])
        else:
            cumulated[1:] = np.arange(1, len(arrived) + 1) * (tokens / len(arrived))
        for place, (start, end) in enumerate(self._spans_ns):
            first, last = np.searchsorted(arrived, (start, end))
            self.per_span[place] += float(cumulated[last] - cumulated[first])
        self._add_to_bins(arrived, np.diff(cumulated))

    def _add_to_bins(self, arrived: Floats, tokens: Floats) -> None:
        if not len(self.per_bin):
            return
        bins = np.searchsorted(self._edges_ns, arrived, side="right") - 1
        np.clip(bins, 0, len(self.per_bin) - 1, out=bins)
        first = int(bins[0])
        counts = np.bincount(bins - first, weights=tokens)
        self.per_bin[first : first + len(counts)] += counts
