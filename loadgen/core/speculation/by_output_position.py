"""Tokens a decode step by where in the output it began: whether acceptance rises or falls along an answer."""

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.summary import OutputPositionBin
from loadgen.core.record import RequestRecord
from loadgen.core.speculation.evidence import Evidence
from loadgen.core.stats.robust import RatioOfSums

FIRST_BIN_TOKENS = 8
"""The first bin ends at this output token; each further one ends at twice the end of the one before."""

_ENDS = FIRST_BIN_TOKENS * 2 ** np.arange(40, dtype=np.int64)


class OutputPositions:
    """Takes requests one by one and keeps sums only, a few a bin.

    Where the server lists its steps and every decode step had a draft, sizes are the server's: they hold the drafts of
    the last step that the end of the answer cut off, so that answers of any length weigh rightly. Otherwise they are
    those of the events.
    """

    def __init__(self) -> None:
        self._bins: dict[int, RatioOfSums] = {}

    def observe(self, record: RequestRecord, told: Evidence) -> None:
        """Adds one completed request."""
        sizes, starts = _listed_steps(record, told) or (told.step_tokens, told.starts)
        if sizes is None or starts is None or not len(sizes):
            return
        bins = int(_ENDS.searchsorted(starts[-1])) + 1
        begin = 0
        for place, end in enumerate(starts.searchsorted(_ENDS[:bins], side="right").tolist()):
            if end > begin:
                ratio = self._bins.setdefault(place, RatioOfSums())
                ratio.add(int(sizes[begin:end].sum()), end - begin)
            begin = end

    def result(self) -> tuple[OutputPositionBin, ...]:
        """The bins that have steps, in their order."""
        return tuple(_bin(place, self._bins[place]) for place in sorted(self._bins))


def _listed_steps(record: RequestRecord, told: Evidence) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Size and start of each step as the server listed them; None unless the list alone makes up the whole answer.

    Then no step went without a draft, which the list would lack; where the events show the steps, their number says so.
    """
    listed = None if record.speculation is None or told.block is None else record.speculation.per_step_accepted
    if not listed or told.decode_tokens is None:
        return None
    if told.step_tokens is not None and len(listed) != len(told.step_tokens):
        return None
    sizes = np.array(listed, dtype=np.int64) + 1
    ends = np.cumsum(sizes)
    if not ends[-1] - sizes[-1] < told.decode_tokens <= ends[-1]:
        return None
    return sizes, ends - sizes + 2


def _bin(place: int, ratio: RatioOfSums) -> OutputPositionBin:
    low, high = ratio.interval() or (None, None)
    return OutputPositionBin(
        first=1 if place == 0 else int(_ENDS[place - 1]) + 1,
        last=int(_ENDS[place]),
        requests=ratio.n,
        steps=ratio.count,
        tokens_per_step=ratio.value,
        low=low,
        high=high,
    )
