"""Which draft length to use at which batch size, from what was measured."""

import math
from collections.abc import Mapping, Sequence

from loadgen.core.comparison.verdict import Claim, LevelVerdict
from loadgen.core.simulation.speculator import BatchRange, as_ranges


def draft_tokens_by_batch(ladders: Mapping[int, Sequence[LevelVerdict]]) -> tuple[BatchRange, ...]:
    """The draft length of most speedup at each batch size up to the highest level, as ranges.

    `ladders` has the verdicts for each draft length tried, all over the same ascending levels of concurrency. At a
    level where no length is claimed to be faster it is 0, no speculation. A batch size between two levels goes by the
    nearer, as a ratio.
    """
    levels = [verdict.level for verdict in next(iter(ladders.values()))]
    best = [_best({tokens: ladder[place] for tokens, ladder in ladders.items()}) for place in range(len(levels))]

    def nearest(batch: int) -> int:
        return min(range(len(levels)), key=lambda place: abs(math.log(levels[place] / batch)))

    return as_ranges([best[nearest(batch)] for batch in range(1, int(levels[-1]) + 1)])


def _best(verdicts: Mapping[int, LevelVerdict]) -> int:
    faster = {tokens: verdict for tokens, verdict in verdicts.items() if verdict.claim is Claim.FASTER}
    return max(faster, key=lambda tokens: (faster[tokens].speedup.value, -tokens), default=0)
