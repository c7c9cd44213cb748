"""What is claimed of a ladder."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from loadgen.core.comparison.noise import ITSELF_ERROR_RATIO
from loadgen.core.comparison.ratio import Ratio, ratio
from loadgen.core.comparison.verdict import Claim, faster_up_to, verdicts
from loadgen.core.stats.log_ratio import LogRatio
from tests.core.comparison.factory import World, experiment

LEVELS = (1.0, 4.0, 16.0, 64.0)


def made(effects: Sequence[float], *, error: float = 0.02, metric: str = "tpot_s.mean") -> list[Ratio]:
    """Ratios with these logarithms, known from very many requests to a standard error."""
    return [
        Ratio(
            metric=metric,
            level=level,
            log_ratio=LogRatio(log=effect, start_variance=None, request_variance=error**2, degrees=100_000, n=100_001),
            left_out_ratio=0.0,
            notes=(),
        )
        for level, effect in zip(LEVELS, effects, strict=True)
    ]


def claims(ratios: Sequence[Ratio], noise: Sequence[Ratio] = ()) -> list[Claim]:
    return [verdict.claim for verdict in verdicts(ratios, noise)]


def test_clear_effects_are_claimed_both_ways() -> None:
    """Lower TPOT is faster, higher is slower; for a rate it is the other way round."""
    effects = [-0.4, -0.2, 0.0, 0.3]
    expected = [Claim.FASTER, Claim.FASTER, Claim.NO_DIFFERENCE, Claim.SLOWER]
    assert claims(made(effects)) == expected
    assert claims(made([-effect for effect in effects], metric="output_tokens_per_s")) == expected


def test_one_marginal_level_among_many_is_not_claimed() -> None:
    """2.2 standard errors leave out 1 at 95 %, and not at the 98.75 % that one of four levels needs."""
    ladder = verdicts(made([-0.044, 0.0, 0.0, 0.0]))
    assert ladder[0].speedup.low > 1
    assert ladder[0].claim is Claim.NO_DIFFERENCE


def test_fewer_false_claims_may_be_asked_for() -> None:
    """2.8 standard errors are enough for one of four levels at 5 % of ladders, and not at 1 % of them."""
    ratios = made([-0.056, 0.0, 0.0, 0.0])
    assert verdicts(ratios)[0].claim is Claim.FASTER
    assert verdicts(ratios, error_ratio=ITSELF_ERROR_RATIO)[0].claim is Claim.NO_DIFFERENCE


def test_a_marginal_level_is_claimed_when_the_others_are_beyond_doubt() -> None:
    """Holm: once three of four are settled the fourth stands alone."""
    assert claims(made([-0.4, -0.3, -0.2, -0.044])) == [Claim.FASTER] * 4


def test_effects_within_the_noise_floor_are_not_claimed() -> None:
    """When the baseline differs from itself by up to 6 %, 5 % is none of the arm's."""
    noise = made([0.02, 0.02, 0.02, 0.02])
    ladder = verdicts(made([-0.4, -0.05, 0.05, 0.3], error=0.01), noise)
    assert [verdict.claim for verdict in ladder] == [
        Claim.FASTER,
        Claim.NO_DIFFERENCE,
        Claim.NO_DIFFERENCE,
        Claim.SLOWER,
    ]
    floor = ladder[0].noise_floor
    assert floor is not None
    assert math.isclose(floor, math.exp(0.02 + 1.96 * 0.02), rel_tol=1e-4)
    assert claims(made([-0.4, -0.05, 0.05, 0.3], error=0.01))[1:3] == [Claim.FASTER, Claim.SLOWER]


def test_noise_floor_is_the_same_whichever_baseline_was_the_slower() -> None:
    """The far end of the interval, above 1 or below."""
    floors = []
    for effect in (0.02, -0.02):
        noise = made([effect] * 4)
        floors.append([verdict.noise_floor for verdict in verdicts(made([-0.4] * 4), noise)])
    assert floors[0] == pytest.approx(floors[1])


def test_noise_is_of_its_own_level() -> None:
    """A level whose noise was not measured has no floor."""
    ladder = verdicts(made([-0.05] * 4, error=0.01), made([0.2] * 4)[1:2])
    assert [verdict.noise_floor is None for verdict in ladder] == [True, False, True, True]
    assert [verdict.claim for verdict in ladder] == [
        Claim.FASTER,
        Claim.NO_DIFFERENCE,
        Claim.FASTER,
        Claim.FASTER,
    ]


def test_faster_up_to_stops_at_the_first_level_that_is_not() -> None:
    """A level beyond a gap is not `up to`."""
    assert faster_up_to(verdicts(made([-0.4, -0.3, 0.0, -0.3]))) == 4
    assert faster_up_to(verdicts(made([-0.4, -0.3, -0.2, -0.3]))) == 64
    assert faster_up_to(verdicts(made([0.0, -0.3, -0.2, -0.3]))) is None


def test_a_ladder_of_a_baseline_against_itself_claims_nothing() -> None:
    """Something is claimed in 5 % of such ladders at most: of 120, in 6 and three standard deviations of chance."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(120):
        ratios = []
        for level in LEVELS:
            found = ratio(*experiment(World(start=0.03), rng, repeats=3, requests=30, level=level), "tpot_s.mean")
            assert found is not None
            ratios.append(found)
        false += set(claims(ratios)) != {Claim.NO_DIFFERENCE}
    assert false <= 6 + 3 * math.sqrt(120 * 0.05 * 0.95)
