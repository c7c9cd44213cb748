"""Attainment and its interval."""

import numpy as np
import pytest

from loadgen.core.capacity.evidence import Evidence, pooled
from loadgen.core.stats.proportion import fewest_for, wilson
from tests.core.capacity.made import made_run


def test_wilson_agrees_with_published_intervals() -> None:
    """Newcombe (1998, table I, method 3): 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for good, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson(good / n, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("target", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_fewest_is_the_least_number_whose_interval_reaches_the_target(target: float) -> None:
    """With that many all good the lower end is at the target; with one fewer it is below."""
    fewest = fewest_for(target)
    assert wilson(1.0, fewest)[0] >= target - 1e-12
    assert wilson(1.0, fewest - 1)[0] < target


def test_misses_that_come_together_count_for_less() -> None:
    """The same share has a wider interval when the misses were neighbours, and runs add up."""
    spread, crowd = made_run(180, 200).evidence, made_run(180, 200, together=True).evidence
    assert spread.ratio == crowd.ratio == 0.9
    assert spread.independent == 200
    assert crowd.independent < 20
    assert crowd.interval[0] < spread.interval[0] < 0.9 < spread.interval[1] < crowd.interval[1]
    both = pooled([spread, spread])
    assert (both.due, both.good) == (400, 360)
    assert both.interval[0] > spread.interval[0]


def test_correlation_of_neighbours_is_that_of_the_markov_chain_they_come_from() -> None:
    """Requests that repeat their neighbour's fate with probability r say as much as n (1 - r) / (1 + r)."""
    rng = np.random.default_rng(1)
    n, r = 40_000, 0.6
    fresh, kept = rng.random(n) < 0.8, rng.random(n) < r
    good = fresh.copy()
    for place in range(1, n):
        if kept[place]:
            good[place] = good[place - 1]
    assert Evidence.of(good).independent == pytest.approx(n * (1 - r) / (1 + r), rel=0.05)


def test_nothing_due_tells_nothing() -> None:
    """No share, and an interval of everything."""
    nothing = Evidence.of(np.zeros(0, dtype=np.bool_))
    assert nothing.ratio is None
    assert nothing.interval == (0.0, 1.0)
