"""A ladder of runs put together: its levels, which were asked for, and its knee with the reason in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Knee, Summary, Sweep, SweepLevel
from loadgen.core.run import LoadMode, RunManifest
from loadgen.core.stats.knee import KNEE_GAIN, knee_index

DEFAULT_LADDER = (1, 2, 4, 8, 16)
"""Levels of concurrency when none are asked for."""

ATTAINMENT = 0.99
"""Share of requests that must meet the objectives, unless another is asked for."""

KNEE_MIN_REQUESTS = 10
"""Requests from which on a level's throughput and attainment say something."""


def sweep_of(sweep_id: str, runs: Sequence[tuple[RunManifest, Summary]]) -> Sweep:
    """The ladder of these runs, one a level, in the order in which they ran; at least one.

    Raises StoreError for a run that is no level of a ladder.
    """
    first = runs[0][0]
    variable = "concurrency" if first.load.mode is LoadMode.CONCURRENCY else "request_rate_rps"
    levels = tuple(SweepLevel(level=level_of(manifest), summary=summary) for manifest, summary in runs)
    asked = first.options.get("slo_attainment")
    found = knee_of(levels, variable, attainment_ratio=asked if isinstance(asked, int | float) else ATTAINMENT)
    return Sweep(
        sweep_id=sweep_id,
        name=first.name,
        variable=variable,
        asked=levels_asked(first.options),
        levels=levels,
        knee=found if isinstance(found, Knee) else None,
        no_knee=None if isinstance(found, Knee) else found,
    )


def levels_asked(options: Mapping[str, Any]) -> tuple[float, ...]:
    """The levels that resolved options of a sweep stand for; empty for options of something else."""
    if "concurrency" not in options:
        return ()
    asked = options.get("request_rate") or options["concurrency"] or DEFAULT_LADDER
    return tuple(asked) if isinstance(asked, list | tuple) else ()


def level_of(manifest: RunManifest) -> float:
    """The concurrency or the rate of a run. Raises StoreError for a run that has neither."""
    load = manifest.load
    level = load.concurrency if load.mode is LoadMode.CONCURRENCY else load.request_rate_rps
    if level is None:
        raise StoreError(
            f"{manifest.run_id}/manifest.json: field 'load': expected the concurrency or the rate of a level"
        )
    return level


def knee_of(levels: Sequence[SweepLevel], variable: str, *, attainment_ratio: float = ATTAINMENT) -> Knee | str:
    """The knee, or in words why there is none.

    With objectives it is the highest level up to which every level meets them, else where throughput stops to follow
    load. `variable` is `concurrency` or `request_rate_rps`. Left out are levels whose measurement is invalid (a client
    at its limit also flattens throughput) and those of fewer than `KNEE_MIN_REQUESTS` requests or fewer than slots.
    """
    valid = [level for level in levels if level.summary.verdict.valid]
    ladder = sorted((level for level in valid if _says_something(level)), key=lambda level: level.level)
    if ladder and any(level.summary.slo is not None for level in ladder):
        return _by_objectives(ladder, variable, attainment_ratio)
    rates = [(level, rate) for level in ladder if (rate := level.summary.throughput.requests_per_s)]
    if len(rates) < 2:
        few = "" if len(valid) < 2 else f" and have {KNEE_MIN_REQUESTS} requests or more, one for each slot at least"
        return f"none: it takes two levels that are valid{few}"
    place = knee_index([level.level for level, _ in rates], [rate for _, rate in rates])
    if place is None:
        return f"none up to {rates[-1][0].level:g}: throughput still rises"
    (knee, rate), (above, rate_above) = rates[place], rates[place + 1]
    load, gain = above.level / knee.level - 1, rate_above / rate - 1
    return Knee(
        level=knee.level,
        reason=f"{_words(variable, above.level)} is {load:.0%} more load for {gain:+.0%} requests/s"
        f" ({rate:.3g} to {rate_above:.3g}); a step is worth it from {KNEE_GAIN:g}% for each 1% on.",
    )


def _says_something(level: SweepLevel) -> bool:
    counts = level.summary.requests
    ended = counts.completed + counts.failed + counts.dropped
    return ended >= max(KNEE_MIN_REQUESTS, level.summary.load.concurrency or 0)


def _by_objectives(ladder: Sequence[SweepLevel], variable: str, attainment_ratio: float) -> Knee | str:
    reached: SweepLevel | None = None
    for level in ladder:
        slo = level.summary.slo
        attained = None if slo is None else slo.attainment_ratio
        if attained is None or attained < attainment_ratio:
            missed = "none was due" if attained is None else f"only {attained * 100:.4g}% did"
            if reached is None:
                return (
                    f"none: {attainment_ratio * 100:g}% of requests are to meet the objectives;"
                    f" at {_words(variable, level.level)} already {missed}"
                )
            return Knee(
                level=reached.level,
                reason=f"The highest level at which {attainment_ratio * 100:g}% of requests met the objectives;"
                f" at {_words(variable, level.level)} {missed}.",
            )
        reached = level
    assert reached is not None
    return Knee(
        level=reached.level,
        reason=f"At every level {attainment_ratio * 100:g}% of requests met the objectives; the limit lies above.",
    )


def _words(variable: str, level: float) -> str:
    return f"concurrency {level:g}" if variable == "concurrency" else f"{level:g} requests/s"
