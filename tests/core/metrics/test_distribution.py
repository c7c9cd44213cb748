"""Distributions and curves."""

import numpy as np
import pytest

from loadgen.core.metrics.distribution import CURVE_POINTS, curve, distribution, error_adjusted
from loadgen.core.metrics.summary import Distribution


def test_nothing_measured_is_none_not_zero() -> None:
    """An empty sample has a count of zero and no other number."""
    assert distribution(np.empty(0), missing=7) == Distribution(n=0, missing=7)


def test_one_value() -> None:
    """Mean, ends and median of a single value are that value."""
    assert distribution(np.array([0.5]), missing=0) == Distribution(n=1, missing=0, mean=0.5, min=0.5, max=0.5, p50=0.5)


def test_nanoseconds_become_seconds_in_every_field() -> None:
    """One conversion for all of them."""
    found = distribution(
        np.array([10_000_000, 20_000_000, 30_000_000, 40_000_000], dtype=np.float32), missing=0, per_s=1e9
    )
    assert (found.min, found.mean, found.p50, found.max) == (0.01, 0.025, 0.025, 0.04)
    assert found.p75 == pytest.approx(0.0325)


def test_missing_values_do_not_enter_n() -> None:
    """30 samples of 250 ms beside 70 without a value: p95 is 250 ms, over 30."""
    found = distribution(np.full(30, 0.25), missing=70)
    assert (found.n, found.missing, found.p95) == (30, 70, 0.25)


def test_failures_count_as_infinitely_late() -> None:
    """75 failures and 25 answers of 160 ms: the least is known, the median is not, n says 100."""
    found = error_adjusted(np.full(25, 0.16), errors=75, missing=0)
    assert (found.n, found.min, found.p50, found.p99, found.max, found.mean) == (100, 0.16, None, None, None, None)


def test_few_failures_leave_the_lower_percentiles() -> None:
    """Two failures in a hundred reach the p99 and not the p95."""
    found = error_adjusted(np.full(98, 0.16), errors=2, missing=0)
    assert (found.p95, found.p99) == (0.16, None)


def test_without_failures_the_adjusted_is_the_plain() -> None:
    """One formula for both."""
    values = np.linspace(0.1, 0.9, 50)
    assert error_adjusted(values, errors=0, missing=3) == distribution(values, missing=3)


@pytest.mark.parametrize("n", [1, 2, 3, CURVE_POINTS, CURVE_POINTS + 1, 5000])
def test_curve_ascends_from_least_to_most(n: int) -> None:
    """At most 200 points, from the smallest value (of several) to the largest, both coordinates ascending."""
    values = np.sort(np.random.default_rng(n).lognormal(size=n))
    points = curve(values)
    assert points is not None
    assert len(points.p) == len(points.value_s) == min(n, CURVE_POINTS)
    assert points.p[-1] == 1.0
    assert points.value_s[-1] == values[-1]
    assert all(np.diff(points.p) > 0)
    assert all(np.diff(points.value_s) >= 0)
    if n > 1:
        assert (points.p[0], points.value_s[0]) == (0.0, values[0])


def test_curve_is_denser_in_the_tail() -> None:
    """Half of the points lie above 0.9, the last but one leaves one value beyond it."""
    points = curve(np.arange(10_000.0))
    assert points is not None
    assert sum(share >= 0.899 for share in points.p) >= CURVE_POINTS // 2
    assert points.p[-2] == pytest.approx(1 - 1 / 10_000)


def test_nothing_has_no_curve() -> None:
    """No sample, no points."""
    assert curve(np.empty(0)) is None
