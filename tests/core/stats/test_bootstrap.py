"""Resampled intervals."""

import numpy as np
import pytest

from loadgen.core.stats.bootstrap import CELLS, bootstrap, median, median_ratio


def test_same_seed_same_interval() -> None:
    """A report rendered again shows the same interval."""
    values = np.random.default_rng(1).lognormal(size=200)
    first = bootstrap((values,), median, np.random.default_rng(5))
    assert first == bootstrap((values,), median, np.random.default_rng(5))
    assert first.low <= first.value <= first.high
    assert first.n == 200


def test_interval_of_a_median_covers_it_about_as_often_as_it_says() -> None:
    """Of 200 samples with a known median, 90 % intervals hold it in 80 % to 98 %."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        estimate = bootstrap((rng.exponential(size=60),), median, rng, confidence_ratio=0.9, resamples=200, block=1)
        covered += estimate.low <= np.log(2) <= estimate.high
    assert 160 <= covered <= 196


def test_blocks_widen_the_interval_of_values_that_follow_each_other() -> None:
    """Neighbours that resemble each other say less than as many independent values."""
    steps = np.random.default_rng(3).normal(size=400)
    walk = np.zeros(400)
    for place in range(1, 400):
        walk[place] = 0.9 * walk[place - 1] + steps[place]
    single = bootstrap((walk,), median, np.random.default_rng(0), block=1)
    blocks = bootstrap((walk,), median, np.random.default_rng(0), block=20)
    assert blocks.high - blocks.low > 1.5 * (single.high - single.low)


def test_ratio_of_medians_of_unequal_samples() -> None:
    """Each sample is resampled on its own, with its own size."""
    rng = np.random.default_rng(4)
    ratio = bootstrap((2 * rng.lognormal(0, 0.1, 50), rng.lognormal(0, 0.1, 300)), median_ratio, rng)
    assert ratio.value == pytest.approx(2, rel=0.1)
    assert 1.8 < ratio.low < ratio.value < ratio.high < 2.2


def test_a_sample_larger_than_the_memory_bound_is_resampled_row_by_row() -> None:
    """The bound limits how much is drawn at once, not what can be drawn from."""
    values = np.arange(float(CELLS // 4 + 1))
    estimate = bootstrap((values,), median, np.random.default_rng(0), resamples=9, block=1)
    assert estimate.low < estimate.high
