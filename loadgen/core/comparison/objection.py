"""What speaks against an arm at a level whatever its speed: it answers fewer requests, or other work is compared."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from loadgen.core.analysis.columns import Mask
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.lengths import lengths_apart

OBJECTION_ERROR_RATIO = 0.01
"""In so many ladders at most it is certain that an arm answers fewer requests though it answers as many."""

FAILURES_APART = 0.05
"""A share of failed requests that is higher by so much holds a recommendation back, certain or not."""

Cells = tuple[Sequence[Cell], Sequence[Cell]]
"""Of one level, of the same repeats and requests: the baseline's and the arm's."""


class Against(StrEnum):
    """What is compared."""

    FAILURES = "share of requests that failed"
    ATTAINMENT = "share of requests that met the objectives"
    LENGTHS = "mean output tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """At one level: a share of 0 to 1 or a number of tokens, of either side. `certain`: it is not chance."""

    against: Against
    level: float
    baseline: float
    arm: float
    certain: bool


def objections(sides: Mapping[float, Cells]) -> dict[float, tuple[Objection, ...]]:
    """By level. Shares of all requests of a level, over its repeats; tokens of those that every run completed.

    Whether a share is certainly worse is told by the sign test: of the requests that fared differently with the two
    arms, counted once however many repeats there are, each is as likely to have fared worse with the one as with the
    other if the arms are alike. Bonferroni's correction shares `OBJECTION_ERROR_RATIO` among all shares and levels.
    """
    error_ratio = OBJECTION_ERROR_RATIO / (2 * max(1, len(sides)))
    found = {}
    for level, cells in sides.items():
        failed = [[np.isnan(cell.columns["e2el_s"]) for cell in side] for side in cells]
        of_level = [_share(Against.FAILURES, level, failed, error_ratio)]
        if all(cell.rates["goodput_rps"] is not None for side in cells for cell in side):
            missed = [[~cell.good for cell in side] for side in cells]
            of_level.append(_share(Against.ATTAINMENT, level, missed, error_ratio))
        of_level.append(_lengths(level, cells, error_ratio))
        found[level] = tuple(each for each in of_level if each is not None)
    return found


def _share(against: Against, level: float, worse: Sequence[Sequence[Mask]], error_ratio: float) -> Objection | None:
    """`worse` holds for each request that failed, or missed; by side and repeat."""
    baseline, arm = (np.mean(side, axis=0) for side in worse)
    shares = float(baseline.mean()), float(arm.mean())
    more, fewer = int(np.count_nonzero(arm > baseline)), int(np.count_nonzero(arm < baseline))
    certain = shares[1] > shares[0] and _sign_test(more, fewer) <= error_ratio
    if against is Against.ATTAINMENT:
        shares = 1 - shares[0], 1 - shares[1]
    if not certain and (against is Against.ATTAINMENT or shares[1] - shares[0] < FAILURES_APART):
        return None
    return Objection(against=against, level=level, baseline=shares[0], arm=shares[1], certain=certain)


def _lengths(level: float, cells: Cells, error_ratio: float) -> Objection | None:
    found = lengths_apart(*cells, error_ratio=error_ratio)
    if found is None:
        return None
    return Objection(against=Against.LENGTHS, level=level, baseline=found.baseline, arm=found.arm, certain=True)


def _sign_test(more: int, fewer: int) -> float:
    """P(X >= more) of a fair coin thrown more + fewer times."""
    n = more + fewer
    return math.fsum(
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
        for k in range(more, n + 1)
    )
