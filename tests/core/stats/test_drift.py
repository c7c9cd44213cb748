"""Drift: found by a test, not by eye, and not found in noise."""

import numpy as np
import pytest

from loadgen.core.stats.drift import DRIFT_MIN_REQUESTS, drift


def noise(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.lognormal(0, 0.4, n)


def neighbours(rng: np.random.Generator, n: int) -> np.ndarray:
    """Latencies that resemble the one before (autocorrelation 0.8)."""
    series = np.zeros(n + 100)
    for place in range(1, n + 100):
        series[place] = 0.8 * series[place - 1] + rng.normal(0, 0.3)
    return np.exp(series[100:])


@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("series", [noise, neighbours])
def test_noise_is_not_drift(series, n: int) -> None:
    """At most 6 % of runs without drift are said to drift, also when neighbours resemble each other."""
    rng = np.random.default_rng(n)
    assert sum(drift(series(rng, n), rng) is not None for _ in range(60)) <= 60 * 0.06


@pytest.mark.parametrize(("first", "factor", "n"), [(10, 10, 100), (10, 10, 1000), (16, 3, 160), (30, 2, 200)])
def test_slow_beginning_is_found(first: int, factor: float, n: int) -> None:
    """Cold starts that leave the median untouched are found, with about their number and size."""
    rng = np.random.default_rng(first + n)
    found = drift(np.concatenate([factor * noise(rng, first), noise(rng, n - first)]), rng)
    assert found is not None
    assert 0.5 * first <= found.first_n <= 2 * first
    assert found.ratio.low > 1.1
    assert found.ratio.value == pytest.approx(factor, rel=0.6)


def test_rising_latency_is_found_as_a_low_beginning() -> None:
    """When load piles up the beginning is faster than the rest."""
    rng = np.random.default_rng(9)
    found = drift(np.linspace(1, 5, 300) * noise(rng, 300), rng)
    assert found is not None
    assert found.ratio.high < 1 / 1.1


def test_one_slow_request_is_no_drift() -> None:
    """A single outlier at the start places no cut."""
    values = np.concatenate([[50.0], noise(np.random.default_rng(1), 200)])
    assert drift(values, np.random.default_rng(0)) is None


def test_a_significant_but_small_difference_is_no_drift() -> None:
    """Three percent is not worth a warning, however sure."""
    rng = np.random.default_rng(2)
    values = np.concatenate([1.03 * rng.normal(1, 0.001, 100), rng.normal(1, 0.001, 300)])
    assert drift(values, rng) is None


def test_constant_values_and_short_samples_have_no_drift() -> None:
    """Nothing to rank, and nothing to judge by."""
    rng = np.random.default_rng(0)
    assert drift(np.ones(500), rng) is None
    assert drift(np.concatenate([np.full(10, 9.0), np.ones(DRIFT_MIN_REQUESTS - 11)]), rng) is None
