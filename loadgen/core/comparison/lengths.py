"""Whether two arms made answers of the same length, request by request."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.core.comparison.cell import Cell
from loadgen.core.stats.student import inside_ratio

LENGTHS_MATTER_RATIO = 0.02
"""Means that differ by less are no matter: two starts of one server differ by as much in what they take for a token."""

LENGTHS_ERROR_RATIO = 0.01
"""So often at most lengths are said to differ that do not, over all levels and arms that are looked at together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Mean output tokens of either side, over the requests that every run completed."""

    baseline: float
    arm: float

    def __str__(self) -> str:
        return f"answers have {self.arm:.1f} tokens on average, those of the baseline {self.baseline:.1f}"


def lengths_apart(baseline: Sequence[Cell], arm: Sequence[Cell], *, error_ratio: float) -> Lengths | None:
    """The lengths of both sides of one level, of the same repeats and requests, where they are not the same work.

    They differ by more than matters, and by more than chance: by the paired t test (Student, 1908) on what each request
    has more tokens with the arm than with the baseline, as means over the repeats, so that a request counts once. None
    where one of the two does not hold, and where fewer than two requests are left to tell.
    """
    tokens = [np.array([cell.columns["output_tokens"] for cell in side]) for side in (baseline, arm)]
    kept = np.logical_and.reduce([np.isfinite(each).all(axis=0) for each in tokens])
    if np.count_nonzero(kept) < 2:
        return None
    of_request = [each[:, kept].mean(axis=0) for each in tokens]
    found = Lengths(baseline=float(of_request[0].mean()), arm=float(of_request[1].mean()))
    if abs(found.arm - found.baseline) <= LENGTHS_MATTER_RATIO * found.baseline:
        return None
    more = of_request[1] - of_request[0]
    spread = float(more.std(ddof=1)) / math.sqrt(len(more))
    if spread and 1 - inside_ratio(abs(float(more.mean())) / spread, len(more) - 1) > error_ratio:
        return None
    return found
