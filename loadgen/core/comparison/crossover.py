"""Up to which load speculation pays: where the speedup falls to 1."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from loadgen.core.comparison.verdict import Claim, LevelVerdict


class NoCrossover(StrEnum):
    """Why a ladder has no one level at which the speedup falls to 1."""

    EVERYWHERE = "pays at every level measured"
    NOWHERE = "pays at no level measured"
    RISES = "pays only above a level"
    SEVERAL = "crosses more than once"
    UNSEEN = "no difference seen at any level"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """The level at which the speedup falls to 1, or the reason why there is no such level, and its bounds either way.

    Up to `low` the intervals leave no doubt that it pays, from `high` on none that it does not. None: there is doubt
    even at the lowest level, or at the highest. Where no level shows a difference nothing is said of any.

    Intervals are each level's own; what is claimed of levels, for all of them together and beyond what the baseline
    may be from itself, is less: the levels that are claimed `faster`, `slower`, and neither (`unclaimed`).
    """

    level: float | None
    low: float | None
    high: float | None
    reason: NoCrossover | None
    faster: tuple[float, ...] = ()
    slower: tuple[float, ...] = ()
    unclaimed: tuple[float, ...] = ()


def crossover(ladder: Sequence[LevelVerdict], tpot_s: Sequence[float]) -> Crossover:
    """The crossover of an ascending ladder, at least one level, each with its speedup (above 1 it pays).

    `tpot_s` is what the baseline takes at each level. TPOT of either arm is taken for a straight line between
    neighbouring levels, as a step takes so much and so much more for every request in it; so is the time that the arm
    saves, and where that is 0 is the crossover. Straight lines in logarithms would err by 10 % and more when levels are
    far apart. The same line through the lower ends of the intervals ends at `low` and through the upper ends at `high`:
    the levels at which the interval holds 1. Neighbouring levels share the server's starts and often err the same way;
    where they err on their own, an interval between them is wider than need be, never narrower.

    Of an arm that does as the baseline does the line crosses 1 somewhere, too, by chance. So without a claim at any
    level there is no crossover, and what is said of one is as seldom false as a claim.
    """
    faster, slower, unclaimed = (
        tuple(verdict.level for verdict in ladder if verdict.claim is claim)
        for claim in (Claim.FASTER, Claim.SLOWER, Claim.NO_DIFFERENCE)
    )
    if not faster and not slower:
        return Crossover(level=None, low=None, high=None, reason=NoCrossover.UNSEEN, unclaimed=unclaimed)
    levels = [verdict.level for verdict in ladder]
    value, low, high = (
        [plain_s * (1 - 1 / getattr(verdict.speedup, end)) for verdict, plain_s in zip(ladder, tpot_s, strict=True)]
        for end in ("value", "low", "high")
    )
    pays = [each > 0 for each in value]
    changes = sum(first != second for first, second in pairwise(pays))
    reason = None
    if changes > 1:
        reason = NoCrossover.SEVERAL
    elif changes == 1:
        reason = None if pays[0] else NoCrossover.RISES
    else:
        reason = NoCrossover.EVERYWHERE if pays[0] else NoCrossover.NOWHERE
    return Crossover(
        level=_first_end(levels, value) if reason is None else None,
        low=_first_end(levels, low),
        high=_first_end(levels[::-1], [-each for each in high[::-1]]),
        reason=reason,
        faster=faster,
        slower=slower,
        unclaimed=unclaimed,
    )


def _first_end(levels: Sequence[float], saved_s: Sequence[float]) -> float | None:
    """How far the line stays above zero from the first level on: to the last if it always does; None for not at all."""
    if saved_s[0] <= 0:
        return None
    for place in range(1, len(levels)):
        before, after = saved_s[place - 1], saved_s[place]
        if after <= 0:
            return levels[place - 1] + (levels[place] - levels[place - 1]) * before / (before - after)
    return levels[-1]
