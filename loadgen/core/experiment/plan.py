"""Arms, levels and repeats put into an order: the sittings of an experiment and the cells of each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from hashlib import sha256
from itertools import chain
from typing import Any

from loadgen.core.errors import ConfigError
from loadgen.core.run import Load, LoadMode

PLAN_SCHEMA = "loadgen.plan/1"


class Order(StrEnum):
    """How arms follow one another: so that a drift cancels (see `orders`), or the same in every repeat."""

    ABBA = "abba"
    SEQUENTIAL = "sequential"


class Role(StrEnum):
    """What an arm is in an experiment for.

    `again` is the baseline once more, to see how much differs when nothing does; `forced` an arm with its acceptance
    forced to a known length, to see what its steps cost.
    """

    BASELINE = "baseline"
    AGAIN = "again"
    COMPARED = "compared"
    FORCED = "forced"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedArm:
    """One way to run the server.

    `name` is unique in the experiment and safe in a folder's name, `label` is for people, `of` names the arm of the
    experiment file whose server it is. `draft_tokens` and `method` as the file or the server's options say, None
    without speculation. `forced_length` is the acceptance length of a forced arm, bonus token included. `gpus` that the
    server runs on are None where nobody says, or where it runs on none.
    """

    name: str
    label: str
    role: Role
    of: str
    method: str | None = None
    draft_tokens: int | None = None
    forced_length: int | None = None
    gpus: int | None = None

    @property
    def again(self) -> "PlannedArm":
        """The same server once more, as an arm of its own."""
        return replace(self, name=f"{self.name}-again", label=f"{self.label} again", role=Role.AGAIN)

    @property
    def forced(self) -> tuple["PlannedArm", "PlannedArm"]:
        """Nothing accepted, which leaves the cost of drafting, and everything accepted, which no drafter can pass."""
        assert self.draft_tokens is not None
        nothing, everything = (
            replace(
                self,
                name=f"{self.name}-forced-{length}",
                label=f"{self.label}, {length} token{'' if length == 1 else 's'} a step",
                role=Role.FORCED,
                forced_length=length,
            )
            for length in (1, self.draft_tokens + 1)
        )
        return nothing, everything


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLevel:
    """One load: the same requests by the same seed in every sitting. `warmup_requests` come before those of `load`."""

    load: Load
    warmup_requests: int

    @property
    def value(self) -> float:
        """Requests in flight, or requests a second."""
        load = self.load
        value = load.concurrency if load.mode is LoadMode.CONCURRENCY else load.request_rate_rps
        assert value is not None
        return value

    @property
    def name(self) -> str:
        """`c16` for 16 requests in flight, `rps2.5` for 2.5 requests a second; safe in a folder's name."""
        return f"{'c' if self.load.mode is LoadMode.CONCURRENCY else 'rps'}{self.value:.15g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCell:
    """One arm at one level in one repeat: what one run measures."""

    arm: PlannedArm
    repeat: int
    level: PlannedLevel

    @property
    def name(self) -> str:
        """`r1-eagle3/c16`: the sitting, and the level in it. The path of its folder, too."""
        return f"{_sitting_name(self.repeat, self.arm)}/{self.level.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """One start of one arm's server, in which all levels are run in turn. Repeats count from 1."""

    arm: PlannedArm
    repeat: int
    levels: tuple[PlannedLevel, ...]

    @property
    def name(self) -> str:
        """`r1-eagle3`; safe in a folder's name."""
        return _sitting_name(self.repeat, self.arm)

    @property
    def cells(self) -> tuple[PlannedCell, ...]:
        """Its runs in their order."""
        return tuple(PlannedCell(arm=self.arm, repeat=self.repeat, level=level) for level in self.levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """An experiment as it will be run: its sittings in their order, the baseline first among `arms`.

    `workload_digest` stands for what is sent (data, sampling, levels, seeds): runs of plans that agree in it can be
    compared. `digest` stands for all that is measured, servers included: only a plan that agrees in it can go on from
    the cells of another.
    """

    schema: str = PLAN_SCHEMA
    name: str
    order: Order
    repeats: int
    arms: tuple[PlannedArm, ...]
    levels: tuple[PlannedLevel, ...]
    sittings: tuple[Sitting, ...]
    workload_digest: str
    digest: str

    @property
    def baseline(self) -> PlannedArm:
        """The arm that the others are compared with."""
        return self.arms[0]

    @property
    def cells(self) -> Iterator[PlannedCell]:
        """All runs in their order."""
        return chain.from_iterable(sitting.cells for sitting in self.sittings)


def make_plan(
    name: str,
    *,
    arms: Sequence[PlannedArm],
    levels: Sequence[PlannedLevel],
    repeats: int,
    order: Order,
    workload: Mapping[str, Any],
    servers: Mapping[str, Any],
) -> Plan:
    """The sittings: each arm in each repeat, in an order in which the baseline counts as the first arm.

    Levels rise within a sitting. What a start or a level leaves behind (cold caches, compilation, heat) then meets
    every arm at the same level, and with it both sides of every ratio. `workload` and `servers` (by arm of the file)
    are told as strict JSON, for the digests. Raises ConfigError when two arms would have one name.
    """
    ordered = sorted(arms, key=lambda arm: arm.role is not Role.BASELINE)
    _check_names(ordered)
    rising = tuple(sorted(levels, key=lambda level: (level.load.mode is not LoadMode.CONCURRENCY, level.value)))
    sittings = tuple(
        Sitting(arm=ordered[place], repeat=repeat, levels=rising)
        for repeat, places in enumerate(orders(len(ordered), repeats, order), start=1)
        for place in places
    )
    sent = {"workload": workload, "levels": [asdict(level) for level in rising]}
    served = {"servers": servers, "sittings": [sitting.name for sitting in sittings]}
    return Plan(
        name=name,
        order=order,
        repeats=repeats,
        arms=tuple(ordered),
        levels=rising,
        sittings=sittings,
        workload_digest=_digest(sent),
        digest=_digest(sent | served),
    )


def orders(arms: int, repeats: int, order: Order) -> list[list[int]]:
    """The order of the arms (numbered from 0) in each repeat.

    `abba` takes a drift that goes on steadily out of every comparison: over all repeats the places of an arm have the
    same sum as those of any other, so that each arm is as early as it is late. A repeat and its reverse do that, A B C
    and C B A. An odd number of repeats ends with three in which the second begins in the middle and the third takes
    first what came latest: A B C, C A B, B C A. For an even number of arms the sums then differ by 1, the least there
    is.
    """
    forward = list(range(arms))
    if order is Order.SEQUENTIAL:
        return [forward] * repeats
    turned = [forward, forward[::-1]]
    if repeats < 3 or repeats % 2 == 0:
        return [turned[repeat % 2] for repeat in range(repeats)]
    half = arms - arms // 2
    second = forward[half:] + forward[:half]
    third = sorted(forward, key=lambda arm: -(arm + second.index(arm)))
    return [turned[repeat % 2] for repeat in range(repeats - 3)] + [forward, second, third]


def _check_names(arms: Sequence[PlannedArm]) -> None:
    taken: dict[str, PlannedArm] = {}
    for arm in arms:
        other = taken.setdefault(arm.name.lower(), arm)
        if other is not arm:
            raise ConfigError(
                f"arms: {other.label!r} and {arm.label!r} would share the folders of {arm.name!r}; rename one of"
                f" {other.of!r} and {arm.of!r}"
            )


def _sitting_name(repeat: int, arm: PlannedArm) -> str:
    return f"r{repeat}-{arm.name}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()
