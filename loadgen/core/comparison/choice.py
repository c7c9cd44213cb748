"""What to run at which load: the arm for each level, and draft lengths by batch size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.core.comparison.draft_length import draft_tokens_by_batch
from loadgen.core.comparison.verdict import Claim, LevelVerdict
from loadgen.core.simulation.speculator import BatchRange
from loadgen.core.stats.bootstrap import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The arm to run at a level, by name: of those that are faster for certain the fastest, else the baseline, which
    has no speedup."""

    level: float
    arm: str
    speedup: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Draft tokens by batch size for one method, from its arms of one or several draft lengths."""

    method: str
    draft_tokens_by_batch: tuple[BatchRange, ...]


def choices(
    levels: Sequence[float], baseline: str, ladders: Mapping[str, Sequence[LevelVerdict]]
) -> tuple[Choice, ...]:
    """For each level. `ladders` has the verdicts of the other arms by name."""
    found = []
    for level in levels:
        faster = [
            (verdict.speedup, name)
            for name, ladder in ladders.items()
            for verdict in ladder
            if verdict.level == level and verdict.claim is Claim.FASTER
        ]
        speedup, name = max(faster, key=lambda each: each[0].value, default=(None, baseline))
        found.append(Choice(level=level, arm=name, speedup=speedup))
    return tuple(found)


def schedules(
    levels: Sequence[float], ladders: Mapping[tuple[str, int], Sequence[LevelVerdict]]
) -> tuple[Schedule, ...]:
    """For each method, from the verdicts by method and draft tokens; `levels` are of concurrency.

    Arms that could not be compared at every level are left aside.
    """
    whole = {arm: ladder for arm, ladder in ladders.items() if [each.level for each in ladder] == list(levels)}
    return tuple(
        Schedule(
            method=method,
            draft_tokens_by_batch=draft_tokens_by_batch(
                {tokens: ladder for (of, tokens), ladder in whole.items() if of == method}
            ),
        )
        for method in dict.fromkeys(method for method, _ in whole)
    )
