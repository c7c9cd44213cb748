"""What may be said of a ladder: at which levels one arm is faster, for all of them together."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.comparison.ratio import Ratio
from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.log_ratio import LogRatio

FAMILY_ERROR_RATIO = 0.05
"""In so many ladders at most something false is claimed of any level."""


class Claim(StrEnum):
    """What a level showed of the arm, `NO_DIFFERENCE` also where there may be one that was too small to see."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_DIFFERENCE = "no difference seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelVerdict:
    """One level: the speedup (above 1 the arm is better) with its own 95 % interval, and what is claimed of it.

    `noise_floor` is the speedup up to which the baseline may differ from itself, 1 or more; None when that was not
    measured. The interval is this level's alone: it can leave out 1 where the ladder as a whole allows no claim.
    """

    level: float
    speedup: Estimate
    claim: Claim
    noise_floor: float | None


def verdicts(
    ratios: Sequence[Ratio], noise: Sequence[Ratio] = (), *, error_ratio: float = FAMILY_ERROR_RATIO
) -> tuple[LevelVerdict, ...]:
    """The claims of a ladder, of one metric or of several. `noise` has ratios of the baseline against itself.

    Holm's procedure: of m levels those are claimed whose interval at 1 - `error_ratio` / m leaves out 1; of those that
    remain, as though they were the whole ladder, again, until nothing is added. So the chance of any false claim in the
    ladder is `error_ratio` at most, however its levels and metrics depend on each other. An effect that is not larger
    than what the interval of the baseline against itself reaches, in the same metric and at the same level, is not
    claimed.
    """
    speedups = [each.speedup for each in ratios]
    seen = _beyond_chance(speedups, error_ratio)
    floors = {(each.metric, each.level): _floor(each.estimate) for each in noise}
    found = []
    for place, each in enumerate(ratios):
        estimate, floor = speedups[place].estimate(), floors.get((each.metric, each.level))
        claim = Claim.NO_DIFFERENCE
        if place in seen and (floor is None or max(estimate.value, 1 / estimate.value) > floor):
            claim = Claim.FASTER if estimate.value > 1 else Claim.SLOWER
        found.append(LevelVerdict(level=each.level, speedup=estimate, claim=claim, noise_floor=floor))
    return tuple(found)


def unclaimed(ratio: Ratio) -> LevelVerdict:
    """A level of which nothing may be said, whatever its interval, since its measurement is not valid."""
    return LevelVerdict(
        level=ratio.level, speedup=ratio.speedup.estimate(), claim=Claim.NO_DIFFERENCE, noise_floor=None
    )


def faster_up_to(ladder: Sequence[LevelVerdict]) -> float | None:
    """The highest level up to which the arm is faster at every level of an ascending ladder; None when at none."""
    reached = None
    for verdict in ladder:
        if verdict.claim is not Claim.FASTER:
            break
        reached = verdict.level
    return reached


def _beyond_chance(speedups: Sequence[LogRatio], error_ratio: float) -> set[int]:
    seen: set[int] = set()
    while len(seen) < len(speedups):
        confidence_ratio = 1 - error_ratio / (len(speedups) - len(seen))
        estimates = {place: each.estimate(confidence_ratio) for place, each in enumerate(speedups) if place not in seen}
        added = {place for place, each in estimates.items() if each.low > 1 or each.high < 1}
        if not added:
            break
        seen |= added
    return seen


def _floor(itself: Estimate) -> float:
    return max(itself.high, 1 / itself.low)
