"""Percentiles: the estimator, its gates, failures as infinity."""

import math

import numpy as np
import pytest

from loadgen.core.stats.quantiles import percentiles, quantile


def test_median_of_1_to_400() -> None:
    """A share of 0.5 is the middle, not half a percent."""
    assert quantile(np.arange(1.0, 401.0), 0.5) == 200.5


def test_p90_of_a_long_tail_interpolates() -> None:
    """The ten values whose p90 other estimators give as 55 or 200 have 69.5 by type 7."""
    assert quantile(np.array([10.0, 12, 15, 20, 22, 25, 30, 40, 55, 200]), 0.9) == pytest.approx(69.5)


@pytest.mark.parametrize(
    ("n", "given"),
    [
        (1, {"p50"}),
        (3, {"p50"}),
        (4, {"p50", "p75"}),
        (9, {"p50", "p75"}),
        (10, {"p50", "p75", "p90"}),
        (19, {"p50", "p75", "p90"}),
        (20, {"p50", "p75", "p90", "p95"}),
        (99, {"p50", "p75", "p90", "p95"}),
        (100, {"p50", "p75", "p90", "p95", "p99"}),
        (999, {"p50", "p75", "p90", "p95", "p99"}),
        (1000, {"p50", "p75", "p90", "p95", "p99", "p99_9"}),
    ],
)
def test_percentiles_are_given_from_a_sample_size_on(n: int, given: set[str]) -> None:
    """A percentile that the sample does not carry is None, not a repeated maximum."""
    found = percentiles(np.arange(float(n)))
    assert {name for name, value in found.items() if value is not None} == given


def test_percentile_on_a_failure_is_none() -> None:
    """With 75 of 100 values infinite the median is no number, and none of the percentiles is NaN."""
    values = np.array([0.16] * 25 + [math.inf] * 75)
    found = percentiles(values)
    assert found["p50"] is None
    assert found["p99"] is None


def test_percentile_between_a_value_and_a_failure_is_none() -> None:
    """Interpolation that touches an infinity is infinite, and one that ends exactly before it is not."""
    assert quantile(np.array([1.0, 2.0, math.inf]), 0.5) == 2.0
    assert quantile(np.array([1.0, 2.0, math.inf]), 0.75) == math.inf


def test_no_percentile_above_the_maximum() -> None:
    """A single sample of 347 ms has a median of 347 ms, unrounded."""
    assert percentiles(np.array([0.347]))["p50"] == 0.347


def test_negative_values() -> None:
    """Signs survive: an early sender would show as a negative lag."""
    assert quantile(np.array([-3.0, -1.0, 1.0]), 0.25) == -2.0
