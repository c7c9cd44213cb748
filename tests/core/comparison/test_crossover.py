"""Where speculation stops paying."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from loadgen.core.comparison.crossover import Crossover, NoCrossover
from loadgen.core.comparison.crossover import crossover as crossover_of
from loadgen.core.comparison.ratio import ratio
from loadgen.core.comparison.verdict import Claim, LevelVerdict
from loadgen.core.stats.bootstrap import Estimate
from tests.core.comparison.factory import World, experiment

LEVELS = (1.0, 4.0, 16.0, 64.0)


def around(values: Sequence[float], factor: float = 1.1) -> list[Estimate]:
    """Speedups whose intervals reach a factor to either side."""
    return [
        Estimate(value=value, low=value / factor, high=value * factor, confidence_ratio=0.95, method="given", n=100)
        for value in values
    ]


def claimed(speedup: Estimate) -> Claim:
    """By its own interval alone."""
    if speedup.low <= 1 <= speedup.high:
        return Claim.NO_DIFFERENCE
    return Claim.FASTER if speedup.value > 1 else Claim.SLOWER


def crossover(
    levels: Sequence[float], speedups: Sequence[Estimate], tpot_s: Sequence[float] | None = None
) -> Crossover:
    """Of a ladder on which every level is judged alone; the baseline's TPOT is the same everywhere unless given."""
    ladder = [
        LevelVerdict(level=level, speedup=speedup, claim=claimed(speedup), noise_floor=None)
        for level, speedup in zip(levels, speedups, strict=True)
    ]
    return crossover_of(ladder, tpot_s or [0.01] * len(ladder))


def test_crossover_lies_on_the_line_of_the_time_saved() -> None:
    """From half a TPOT saved at 4 to one lost at 16, a third of the way: 8; its bounds where the ends cross."""
    found = crossover(LEVELS, around([2.5, 2.0, 0.5, 0.4], 2**0.5))
    assert found.level == pytest.approx(8)
    assert found.low == pytest.approx(4 * 4**0.25)
    assert found.high == pytest.approx(4 * 4**0.75)
    assert found.reason is None


@pytest.mark.parametrize("levels", [(16.0, 32.0), (8.0, 64.0), (1.0, 400.0), (4.0, 16.0, 64.0)])
def test_levels_far_apart_give_the_same_crossover(levels: tuple[float, ...]) -> None:
    """Of servers whose steps take so much and so much more for every request: 10 ms + 0.1 ms against 7.6 ms + 0.2 ms
    a request, alike at 24.
    """
    plain_s = [0.010 + 0.0001 * level for level in levels]
    speedups = [plain / (0.0076 + 0.0002 * level) for plain, level in zip(plain_s, levels, strict=True)]
    found = crossover(levels, around(speedups, 1.001), plain_s)
    assert found.level == pytest.approx(24)
    assert found.low == pytest.approx(24, rel=0.03)
    assert found.high == pytest.approx(24, rel=0.03)


def test_a_speedup_of_exactly_one_is_the_crossover() -> None:
    """It pays below and no longer there, also where no level measured lies beyond."""
    assert crossover(LEVELS, around([2.0, 1.5, 1.0, 0.5])).level == pytest.approx(16)
    assert crossover(LEVELS, around([2.0, 1.5, 1.2, 1.0])).level == pytest.approx(64)
    assert crossover(LEVELS, around([0.8, *[1.0] * 3])).reason is NoCrossover.NOWHERE


def test_what_is_claimed_stands_beside_the_bounds() -> None:
    """Bounds are of each level's own interval; a level that leaves out 1 there may be no claim of the ladder, and then
    it is not said for certain that an arm pays up to there, or costs from there on.
    """
    ladder = [
        LevelVerdict(level=level, speedup=speedup, claim=claim, noise_floor=1.3)
        for level, speedup, claim in zip(
            LEVELS,
            around([2.5, 2.0, 1.2, 0.8]),
            (Claim.FASTER, Claim.FASTER, Claim.NO_DIFFERENCE, Claim.SLOWER),
            strict=True,
        )
    ]
    found = crossover_of(ladder, [0.01] * 4)
    assert (found.faster, found.slower, found.unclaimed) == ((1, 4), (64,), (16,))
    assert found.low is not None
    assert found.low > 16


def test_without_a_claim_there_is_no_crossover() -> None:
    """Not even where a line through the speedups falls to 1: two arms that are alike do that, too. Nor are there bounds
    where a level's own interval leaves out 1, as one of several does by chance.
    """
    for values in ([1.05, 1.02, 0.98, 0.95], [0.99] * 4, [1.01] * 4):
        assert crossover(LEVELS, around(values)) == Crossover(
            level=None, low=None, high=None, reason=NoCrossover.UNSEEN, unclaimed=LEVELS
        )
    chance = [
        LevelVerdict(level=level, speedup=speedup, claim=Claim.NO_DIFFERENCE, noise_floor=None)
        for level, speedup in zip(LEVELS, around([1.2, 1.0, 0.98, 0.97]), strict=True)
    ]
    assert crossover_of(chance, [0.01] * 4).low is None


def test_falling_twice_is_crossing_more_than_once() -> None:
    """Two falls and a rise, and a rise and a fall."""
    assert crossover(LEVELS, around([2.0, 0.5, 2.0, 2.0])).reason is NoCrossover.SEVERAL
    assert crossover(LEVELS, around([0.5, 2.0, 2.0, 0.5])).reason is NoCrossover.SEVERAL


@pytest.mark.parametrize(
    ("values", "reason", "low", "high"),
    [
        ([2.0, 1.8, 1.6, 1.4], NoCrossover.EVERYWHERE, 64.0, None),
        ([0.8, 0.7, 0.6, 0.5], NoCrossover.NOWHERE, None, 1.0),
        ([0.5, 0.8, 1.5, 2.0], NoCrossover.RISES, None, None),
    ],
)
def test_ladders_without_a_crossover_say_why(
    values: list[float], reason: NoCrossover, low: float | None, high: float | None
) -> None:
    """And up to where it pays beyond doubt, or from where on it does not."""
    found = crossover(LEVELS, around(values))
    assert (found.level, found.reason, found.low, found.high) == (None, reason, low, high)


def test_of_several_crossings_the_first_is_not_sold_as_the_answer() -> None:
    """The bounds say what is known all the same."""
    found = crossover(LEVELS, around([1.5, 0.98, 1.02, 0.5]))
    assert found.level is None
    assert found.reason is NoCrossover.SEVERAL
    assert found.low is not None
    assert found.high is not None
    assert 1 < found.low < 4 < 16 < found.high < 64


def test_a_crossover_near_the_end_of_the_ladder_is_open_at_that_side() -> None:
    """The interval of the last level holds 1, so that it may pay above; of the first, so that it may not pay at all."""
    late, early = crossover(LEVELS, around([2.0, 1.8, 1.5, 0.95])), crossover(LEVELS, around([1.05, 0.8, 0.7, 0.6]))
    assert late.level is not None
    assert late.high is None
    assert early.level is not None
    assert early.low is None


def test_one_level_is_a_ladder() -> None:
    """Which pays or does not."""
    assert crossover([8], around([1.5])).low == 8
    assert crossover([8], around([0.5])).reason is NoCrossover.NOWHERE


def test_a_known_crossover_is_within_the_bounds() -> None:
    """Speedup of 1.6 at one request that falls to 1 at 24.9: within the bounds in at least 37 of 40 experiments."""
    levels = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    rng = np.random.default_rng(8)

    def speedup(level: float) -> float:
        return 2.3 / (1.4 + level / 27.7)

    assert speedup(24.93) == pytest.approx(1, abs=1e-3)
    inside, levels_found = 0, []
    for _ in range(40):
        speedups = []
        for level in levels:
            world = World(effect=-math.log(speedup(level)), start=0.02, noise=0.15)
            found = ratio(*experiment(world, rng, repeats=3, requests=40, level=level), "tpot_s.mean")
            assert found is not None
            speedups.append(found.speedup.estimate())
        made = crossover(levels, speedups)
        inside += (made.low or 0) <= 24.93 <= (made.high or math.inf)
        levels_found += [] if made.level is None else [made.level]
    assert inside >= 37
    assert len(levels_found) >= 35
    assert float(np.median(levels_found)) == pytest.approx(24.93, rel=0.05)
