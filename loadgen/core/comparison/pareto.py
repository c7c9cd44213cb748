"""What a server gives its users against what it gives in all: the trade that a level of load makes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadgen.core.comparison.cell import Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """One arm at one level: `user_tokens_per_s` is 1 / mean TPOT, both are geometric means over the repeats.

    `gpu_tokens_per_s` is `output_tokens_per_s` for each GPU; None where nobody says how many there are.
    """

    arm: str
    level: float
    user_tokens_per_s: float
    output_tokens_per_s: float
    gpu_tokens_per_s: float | None = None


def operating_point(cells: Sequence[Cell], *, gpus: int | None = None) -> OperatingPoint | None:
    """The point of one arm on so many GPUs at one level; None when one of its repeats has no TPOT or no token rate."""
    tpots = [cell.columns["tpot_s"][cell.columns["tpot_s"] > 0] for cell in cells]
    rates = [rate for cell in cells if (rate := cell.rates["output_tokens_per_s"])]
    if len(rates) < len(cells) or not all(len(values) for values in tpots):
        return None
    output_tokens_per_s = math.exp(float(np.mean(np.log(rates))))
    return OperatingPoint(
        arm=cells[0].arm,
        level=cells[0].level,
        user_tokens_per_s=math.exp(-float(np.mean([math.log(values.mean()) for values in tpots]))),
        output_tokens_per_s=output_tokens_per_s,
        gpu_tokens_per_s=None if gpus is None else output_tokens_per_s / gpus,
    )


def pareto_front(points: Sequence[OperatingPoint]) -> tuple[OperatingPoint, ...]:
    """The points that no other one beats in both, from most tokens a second for a user to most in all.

    In all is for each GPU, where that is known of every point, else of the server.
    """
    per_gpu = all(point.gpu_tokens_per_s is not None for point in points)

    def rate(point: OperatingPoint) -> float:
        return (point.gpu_tokens_per_s if per_gpu else None) or point.output_tokens_per_s

    front: list[OperatingPoint] = []
    for point in sorted(points, key=lambda each: (-each.user_tokens_per_s, -rate(each))):
        if not front or rate(point) > rate(front[-1]):
            front.append(point)
    return tuple(front)
