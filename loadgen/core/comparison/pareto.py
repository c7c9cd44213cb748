"""What a server gives its users against what it gives in all: the trade that a level of load makes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.core.comparison.cell import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """One arm at one level: `user_tokens_per_s` is 1 / mean TPOT, both are geometric means over the repeats."""

    arm: str
    level: float
    user_tokens_per_s: float
    output_tokens_per_s: float


def operating_point(cells: Sequence[Cell]) -> OperatingPoint | None:
    """The point of one arm at one level, from its repeats; None when a run has no TPOT or no token rate."""
    tpots = [cell.columns["tpot_s"][cell.columns["tpot_s"] > 0] for cell in cells]
    rates = [rate for cell in cells if (rate := cell.rates["output_tokens_per_s"])]
    if len(rates) < len(cells) or not all(len(values) for values in tpots):
        return None
    return OperatingPoint(
        arm=cells[0].arm,
        level=cells[0].level,
        user_tokens_per_s=math.exp(-float(np.mean([math.log(values.mean()) for values in tpots]))),
        output_tokens_per_s=math.exp(float(np.mean(np.log(rates)))),
    )


def pareto_front(points: Sequence[OperatingPoint]) -> tuple[OperatingPoint, ...]:
    """The points that no other one beats in both, from most tokens a second for a user to most in all."""
    front: list[OperatingPoint] = []
    for point in sorted(points, key=lambda each: (-each.user_tokens_per_s, -each.output_tokens_per_s)):
        if not front or point.output_tokens_per_s > front[-1].output_tokens_per_s:
            front.append(point)
    return tuple(front)
