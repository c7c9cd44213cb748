"""Has the capacity changed? One result against the latest ones of the same test, by their own noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from loadgen.core.stats.student import critical

LOOKED_AT = 20
"""The latest results that a new one is held against."""

FEWEST = 4
"""With fewer of them nothing is said."""

CONFIDENCE_RATIO = 0.99
"""Of unchanged results one in a hundred is taken for a change by chance."""

_MAD = 1.4826


class Change(StrEnum):
    """What a result is against those before it."""

    TOO_FEW = "too_few"
    NONE = "no_change"
    LOWER = "regression"
    HIGHER = "improvement"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """`expected` is the median of the results before, `low` to `high` where an unchanged one would lie.

    `ratio` is the result over the median. None where there are too few.
    """

    change: Change
    n: int
    expected: float | None = None
    low: float | None = None
    high: float | None = None
    ratio: float | None = None


def judged(level: float | None, before: Sequence[float], *, resolution_ratio: float) -> Judgement:
    """A result against valid results before it, the latest last. `level` is None when not even the first level passed.

    Levels are compared by their logarithms, since a search steps by ratios. Spread is by the median of distances from
    the median, which one odd night does not move, under Student's t; a change smaller than the step of the search,
    `resolution_ratio`, is none.
    """
    known = [math.log(each) for each in before[-LOOKED_AT:] if each > 0]
    n = len(known)
    if n < FEWEST:
        return Judgement(change=Change.TOO_FEW, n=n)
    middle = median(known)
    spread = _MAD * median(abs(each - middle) for each in known)
    reach = max(
        critical(CONFIDENCE_RATIO, n - 1) * spread * math.sqrt(1 + 1 / n), math.log1p(max(0.0, resolution_ratio))
    )
    here = -math.inf if not level else math.log(level)
    apart = here - middle
    # a step of the search exactly is within it, whatever rounding says
    change = Change.NONE if abs(apart) <= reach * (1 + 1e-9) else Change.LOWER if apart < 0 else Change.HIGHER
    return Judgement(
        change=change,
        n=n,
        expected=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        ratio=None if not level else math.exp(apart),
    )
