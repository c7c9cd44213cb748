"""Tail of the Poisson distribution."""

import numpy as np
import pytest

from loadgen.core.stats.poisson import at_least


@pytest.mark.parametrize(("count", "mean"), [(0, 0.1), (1, 0.1), (5, 0.5), (20, 11.5), (1100, 1000.0)])
def test_it_is_how_often_so_many_are_drawn(count: int, mean: float) -> None:
    """Within four standard errors of 200,000 draws."""
    drawn = np.random.default_rng(1).poisson(mean, 200_000) >= count
    expected = at_least(count, mean)
    assert abs(drawn.mean() - expected) <= 4 * np.sqrt(max(expected * (1 - expected), 1e-9) / drawn.size)


def test_what_is_certain_and_what_hardly_ever_happens() -> None:
    """Nothing at all is always there; beyond what doubles hold the chance is 0, never below."""
    assert at_least(0, 3.0) == 1
    assert 0 <= at_least(400, 3.0) < 1e-15
