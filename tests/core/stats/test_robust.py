"""Intervals over requests: they hold the truth as often as they say, and are not fooled by what one request holds."""

import numpy as np
import pytest

from loadgen.core.stats.robust import INTERVAL_MIN_REQUESTS, RatioOfSums, log_slope


def ratio_of(parts: list[int], counts: list[int]) -> RatioOfSums:
    ratio = RatioOfSums()
    for part, count in zip(parts, counts, strict=True):
        ratio.add(part, count)
    return ratio


def test_a_ratio_of_sums() -> None:
    """30 of 10 and 10 of 10: 2, whatever the order; n are requests, count the sum below."""
    ratio = ratio_of([30, 10], [10, 10])
    assert (ratio.value, ratio.n, ratio.count) == (2.0, 2, 20)


def test_few_requests_have_no_interval() -> None:
    """One more request than too few has one."""
    few = INTERVAL_MIN_REQUESTS - 1
    assert ratio_of([3] * few, [1] * few).interval() is None
    assert ratio_of([3] * (few + 1), [1] * (few + 1)).interval() == (3.0, 3.0)
    grid = np.arange(1.0, few + 1)
    assert log_slope(grid, grid) is None
    assert log_slope(np.append(grid, 20.0), np.append(grid, 20.0)) is not None


def test_the_interval_of_a_ratio_by_hand() -> None:
    """Ten requests, half 1 and half 3: a standard error of 1/3, and 2.262 of them on either side."""
    low, high = ratio_of([1, 3] * 5, [1] * 10).interval()
    assert (low, high) == pytest.approx((2 - 2.262157 / 3, 2 + 2.262157 / 3))


def test_the_interval_of_a_slope_is_the_sandwich() -> None:
    """The matrix form of the variance, on a spread that grows with x; 18 degrees of freedom have t = 2.101."""
    rng = np.random.default_rng(9)
    x = np.linspace(1, 4, 20)
    y = np.exp(-np.log(x) + rng.normal(0, 0.05 * x**2))
    design = np.column_stack([np.ones(20), np.log(x)])
    bread = np.linalg.inv(design.T @ design)
    rest = np.log(y) - design @ (bread @ design.T @ np.log(y))
    variance = (bread @ (design.T * rest**2) @ design @ bread)[1, 1] * 20 / 18
    estimate, _ = log_slope(x, y)
    assert estimate.high - estimate.value == pytest.approx(2.100922 * variance**0.5)
    assert estimate.value - estimate.low == pytest.approx(2.100922 * variance**0.5)


def test_the_interval_of_a_ratio_holds_the_truth() -> None:
    """Requests that differ among themselves: 95 of 100 intervals hold the true 3, steps within a request or not."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        chances, counts = rng.beta(2, 2, size=30), rng.integers(2, 40, size=30)
        low, high = ratio_of((rng.binomial(4 * counts, chances) + counts).tolist(), counts.tolist()).interval()
        held += low <= 3.0 <= high
    assert 0.91 <= held / 400 <= 0.98


def test_the_interval_of_a_slope_holds_the_truth() -> None:
    """A spread that grows with x, which plain least squares would understate: 95 of 100 hold the true -1."""
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(400):
        x = 1 + 3 * rng.beta(2, 2, size=40)
        estimate, correlation = log_slope(x, 0.02 / x * np.exp(rng.normal(0, 0.02 * x**2)))
        assert -1 <= correlation <= 1
        held += estimate.low <= -1.0 <= estimate.high
    assert 0.91 <= held / 400 <= 0.98


def test_a_power_law_has_its_exponent() -> None:
    """y = 5 / x exactly: slope -1, correlation -1, an interval without width."""
    x = np.linspace(1, 4, 50)
    estimate, correlation = log_slope(x, 5 / x)
    assert (estimate.value, estimate.low, estimate.high, correlation) == pytest.approx((-1.0, -1.0, -1.0, -1.0))
    assert estimate.n == 50


def test_no_spread_has_no_slope() -> None:
    """Every x alike, or every y: nothing goes with anything."""
    ones, grid = np.ones(30), np.linspace(1, 2, 30)
    assert log_slope(ones, grid) is None
    assert log_slope(grid, ones) is None
