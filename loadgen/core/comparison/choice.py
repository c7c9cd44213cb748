"""What to run at which load: the arm for each level, and draft lengths by batch size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadgen.core.comparison.draft_length import DraftLength, draft_lengths, draft_tokens_by_batch
from loadgen.core.comparison.gain import Gain, Worth
from loadgen.core.comparison.verdict import Claim
from loadgen.core.simulation.speculator import BatchRange
from loadgen.core.stats.bootstrap import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The arm to run at a level, by name: of those that pay there the one with the fastest TPOT, else the baseline,
    which has no speedup.

    `passed_over` are arms whose TPOT is faster for certain and which lose E2EL, throughput or goodput.
    """

    level: float
    arm: str
    speedup: Estimate | None
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Draft tokens by batch size for one method, from its arms of one or several draft lengths.

    `lengths` says for each level what its entry rests on.
    """

    method: str
    draft_tokens_by_batch: tuple[BatchRange, ...]
    lengths: tuple[DraftLength, ...]


def choices(levels: Sequence[float], baseline: str, ladders: Mapping[str, Mapping[float, Gain]]) -> tuple[Choice, ...]:
    """For each level. `ladders` has the gains of the other arms by name and level."""
    found = []
    for level in levels:
        gains = {name: ladder[level] for name, ladder in ladders.items() if level in ladder}
        paying = [(gain.verdict.speedup, name) for name, gain in gains.items() if gain.worth is Worth.PAYS]
        speedup, name = max(paying, key=lambda each: each[0].value, default=(None, baseline))
        lossy = [
            name for name, gain in gains.items() if gain.verdict.claim is Claim.FASTER and gain.worth is Worth.COSTS
        ]
        found.append(Choice(level=level, arm=name, speedup=speedup, passed_over=tuple(lossy)))
    return tuple(found)


def schedules(levels: Sequence[float], ladders: Mapping[tuple[str, int], Mapping[float, Gain]]) -> tuple[Schedule, ...]:
    """For each method, from the gains by method and draft tokens, then by level; `levels` are of concurrency."""
    found = []
    for method in dict.fromkeys(method for method, _ in ladders):
        lengths = draft_lengths(levels, {tokens: gains for (of, tokens), gains in ladders.items() if of == method})
        found.append(Schedule(method=method, draft_tokens_by_batch=draft_tokens_by_batch(lengths), lengths=lengths))
    return tuple(found)
