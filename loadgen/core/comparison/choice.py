"""What to run at which load: the arm for each level, and draft lengths by batch size."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loadgen.core.comparison.draft_length import DraftLength, draft_lengths, draft_tokens_by_batch
from loadgen.core.comparison.gain import Gain, Worth
from loadgen.core.comparison.verdict import Claim
from loadgen.core.simulation.speculator import BatchRange
from loadgen.core.stats.bootstrap import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The arm to run at a level, by name: of those that pay there the one with the fastest TPOT, else the baseline,
    which has no speedup.

    `passed_over` are arms whose TPOT is faster for certain and which lose E2EL, throughput or goodput or answer fewer
    requests, `held_back` those of which something speaks against believing it.
    """

    level: float
    arm: str
    speedup: Estimate | None
    passed_over: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Draft tokens by batch size for one method, from its arms of one or several draft lengths.

    `arms` are their labels, `configuration` is what else they have in common, in the engine's own words. `lengths` says
    for each level what its entry rests on; levels at which none of them was run are `not_run` and have no entry.
    """

    method: str
    arms: tuple[str, ...]
    configuration: Mapping[str, Any]
    draft_tokens_by_batch: tuple[BatchRange, ...]
    lengths: tuple[DraftLength, ...]
    not_run: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """An arm that drafts: the levels that it was run at, and its gains where it could be compared.

    `configuration` is how it was told to speculate, in the engine's own words, without what gives draft lengths. At
    `barred` levels something speaks against it that its neighbours' evidence does not answer.
    """

    label: str
    method: str
    draft_tokens: int
    configuration: Mapping[str, Any]
    levels: Collection[float]
    gains: Mapping[float, Gain]
    barred: Collection[float] = ()


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
        held = [name for name, gain in gains.items() if gain.worth is Worth.WITHHELD]
        found.append(Choice(level=level, arm=name, speedup=speedup, passed_over=tuple(lossy), held_back=tuple(held)))
    return tuple(found)


def schedules(levels: Sequence[float], arms: Sequence[Drafting]) -> tuple[Schedule, ...]:
    """One for all arms that differ in draft length alone; `levels` are of concurrency, ascending."""
    alike: dict[str, list[Drafting]] = {}
    for arm in arms:
        alike.setdefault(json.dumps([arm.method, arm.configuration], sort_keys=True), []).append(arm)
    found = []
    for of_method in alike.values():
        run = [level for level in levels if any(level in arm.levels for arm in of_method)]
        if not run:
            continue
        lengths = draft_lengths(
            run,
            {arm.draft_tokens: arm.gains for arm in of_method},
            barred={arm.draft_tokens: arm.barred for arm in of_method},
        )
        found.append(
            Schedule(
                method=of_method[0].method,
                arms=tuple(arm.label for arm in of_method),
                configuration=of_method[0].configuration,
                draft_tokens_by_batch=draft_tokens_by_batch(lengths),
                lengths=lengths,
                not_run=tuple(level for level in levels if level not in run),
            )
        )
    return tuple(found)
