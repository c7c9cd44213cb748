"""The knee of a ladder of runs, with the reason in words."""

from collections.abc import Sequence

from loadgen.core.metrics.summary import Knee, SweepLevel
from loadgen.core.stats.knee import KNEE_GAIN, knee_index

ATTAINMENT = 0.99
"""Share of requests that must meet the objectives, unless another is asked for."""


def knee_of(levels: Sequence[SweepLevel], variable: str, *, attainment_ratio: float = ATTAINMENT) -> Knee | None:
    """With objectives the highest level up to which every level meets them, else where throughput stops to follow load.

    `variable` is `concurrency` or `request_rate_rps`. Levels whose measurement is invalid are left out: a client at its
    limit also flattens throughput. None when no level meets the objectives, when throughput still follows at the
    highest level (the knee lies above), and with fewer than two levels that completed anything.
    """
    valid = (level for level in levels if level.summary.verdict.valid)
    ladder = sorted(valid, key=lambda level: level.level)
    if any(level.summary.slo is not None for level in ladder):
        return _by_objectives(ladder, variable, attainment_ratio)
    rates = [(level, rate) for level in ladder if (rate := level.summary.throughput.requests_per_s)]
    place = knee_index([level.level for level, _ in rates], [rate for _, rate in rates])
    if place is None:
        return None
    (knee, rate), (above, rate_above) = rates[place], rates[place + 1]
    load, gain = above.level / knee.level - 1, rate_above / rate - 1
    return Knee(
        level=knee.level,
        reason=f"{_words(variable, above.level)} is {load:.0%} more load for {gain:+.0%} requests/s"
        f" ({rate:.3g} to {rate_above:.3g}); a step is worth it from {KNEE_GAIN:g} % for each 1 % on.",
    )


def _by_objectives(ladder: Sequence[SweepLevel], variable: str, attainment_ratio: float) -> Knee | None:
    reached = None
    for level in ladder:
        slo = level.summary.slo
        attained = None if slo is None else slo.attainment_ratio
        if attained is None or attained < attainment_ratio:
            missed = "none was due" if attained is None else f"only {attained * 100:.4g} % did"
            if reached is None:
                return None
            return Knee(
                level=reached.level,
                reason=f"The highest level at which {attainment_ratio * 100:g} % of requests met the objectives;"
                f" at {_words(variable, level.level)} {missed}.",
            )
        reached = level
    if reached is None:
        return None
    return Knee(
        level=reached.level,
        reason=f"At every level {attainment_ratio * 100:g} % of requests met the objectives; the limit lies above.",
    )


def _words(variable: str, level: float) -> str:
    return f"concurrency {level:g}" if variable == "concurrency" else f"{level:g} requests/s"
