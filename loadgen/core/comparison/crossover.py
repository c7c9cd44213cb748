"""Up to which load speculation pays: where the speedup falls to 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from loadgen.core.stats.bootstrap import Estimate


class NoCrossover(StrEnum):
    """Why a ladder has no one level at which the speedup falls to 1."""

    EVERYWHERE = "pays at every level measured"
    NOWHERE = "pays at no level measured"
    RISES = "pays only above a level"
    SEVERAL = "crosses more than once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """The level at which the speedup falls to 1, or the reason why there is no such level, and its bounds either way.

    Up to `low` the intervals leave no doubt that it pays, from `high` on none that it does not. None: there is doubt
    even at the lowest level, or at the highest.
    """

    level: float | None
    low: float | None
    high: float | None
    reason: NoCrossover | None


def crossover(levels: Sequence[float], speedups: Sequence[Estimate]) -> Crossover:
    """The crossover of a ladder: ascending levels above zero, at least one, with the speedup (above 1 it pays) of each.

    Between neighbouring levels the logarithm of the speedup is a straight line in that of the level. The same lines
    through the lower ends of the intervals end at `low` and through the upper ends at `high`: the levels at which the
    interval holds 1. Neighbouring levels share the server's starts and often err the same way; where they err on their
    own, an interval between them is wider than need be, never narrower.
    """
    value, low, high = ([math.log(getattr(each, name)) for each in speedups] for name in ("value", "low", "high"))
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
    )


def _first_end(levels: Sequence[float], logs: Sequence[float]) -> float | None:
    """How far the line stays above zero from the first level on: to the last if it always does; None for not at all."""
    if logs[0] <= 0:
        return None
    for place in range(1, len(levels)):
        before, after = logs[place - 1], logs[place]
        if after <= 0:
            share = before / (before - after)
            return float(levels[place - 1] ** (1 - share) * levels[place] ** share)
    return levels[-1]
