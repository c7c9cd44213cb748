"""Which draft length to use at which batch size, from what was measured, and what of it is evidence."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from loadgen.core.comparison.gain import Gain, Worth
from loadgen.core.simulation.speculator import BatchRange, as_ranges


class Basis(StrEnum):
    """What the draft length of a level rests on.

    `PAYS`: it pays there. `COSTS`: every length tried costs there, so none is drafted. `BETWEEN`: nothing was shown,
    and the nearest levels on either side that show something come to the same. `DEFAULT`: nothing was shown, and they
    do not, or there is none on one side, or something speaks against it here; then none is drafted, as without
    speculation.
    """

    PAYS = "pays"
    COSTS = "costs"
    BETWEEN = "between levels that agree"
    DEFAULT = "no evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftLength:
    """The draft length for one level; 0 for no drafts."""

    level: float
    draft_tokens: int
    basis: Basis


def draft_lengths(
    levels: Sequence[float],
    ladders: Mapping[int, Mapping[float, Gain]],
    *,
    barred: Mapping[int, Collection[float]] = MappingProxyType({}),
) -> tuple[DraftLength, ...]:
    """For each of the ascending levels the length of most speedup among those that pay there.

    `ladders` has the gains by level for each draft length tried; a level that one could not be compared at shows
    nothing of it. Levels at which a length is `barred` do not take it over from those on either side.
    """
    shown = [_shown({tokens: gains.get(level) for tokens, gains in ladders.items()}) for level in levels]
    found = []
    for place, (level, tokens) in enumerate(zip(levels, shown, strict=True)):
        if tokens is not None:
            found.append(DraftLength(level=level, draft_tokens=tokens, basis=Basis.PAYS if tokens else Basis.COSTS))
            continue
        below = next((each for each in reversed(shown[:place]) if each is not None), None)
        above = next((each for each in shown[place + 1 :] if each is not None), None)
        if below is None or below != above or level in barred.get(below, ()):
            found.append(DraftLength(level=level, draft_tokens=0, basis=Basis.DEFAULT))
        else:
            found.append(DraftLength(level=level, draft_tokens=below, basis=Basis.BETWEEN))
    return tuple(found)


def draft_tokens_by_batch(lengths: Sequence[DraftLength]) -> tuple[BatchRange, ...]:
    """The draft length of each batch size up to the highest level of concurrency, as ranges.

    A batch size between two levels goes by the nearer, as a ratio.
    """

    def nearest(batch: int) -> DraftLength:
        return min(lengths, key=lambda each: abs(math.log(each.level / batch)))

    return as_ranges([nearest(batch).draft_tokens for batch in range(1, int(lengths[-1].level) + 1)])


def _shown(gains: Mapping[int, Gain | None]) -> int | None:
    """The length that was shown to be best at a level, 0 where none pays; None where that was not shown."""
    paying = {tokens: gain for tokens, gain in gains.items() if gain is not None and gain.worth is Worth.PAYS}
    if paying:
        return max(paying, key=lambda tokens: (paying[tokens].verdict.speedup.value, -tokens))
    return 0 if all(gain is not None and gain.worth is Worth.COSTS for gain in gains.values()) else None
