"""The knee of a ladder of load."""

import math
from collections.abc import Sequence

KNEE_GAIN = 0.25
"""A step up is worth it while one percent more load brings at least this many percent more throughput."""


def knee_index(levels: Sequence[float], throughput: Sequence[float]) -> int | None:
    """Index of the highest level that was worth stepping up to, when a step above it was not.

    Levels ascend. A step's gain is its relative gain in throughput over its relative gain in load; the first step under
    `KNEE_GAIN` ends the climb. None with fewer than two levels, and when every step was worth it: the knee then lies
    above what was tried.
    """
    for place in range(1, len(levels)):
        load = levels[place] / levels[place - 1] - 1
        gain = throughput[place] / throughput[place - 1] - 1 if throughput[place - 1] > 0 else math.inf
        if gain < KNEE_GAIN * load:
            return place - 1
    return None
