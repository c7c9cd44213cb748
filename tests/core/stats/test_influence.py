"""Influences: the variance that resampling finds, without resampling."""

from collections.abc import Callable

import numpy as np
import pytest

from loadgen.core.stats.influence import LogStatistic, log_mean, log_quantile, log_ratio_of_means

Floats = np.ndarray


def variance(found: LogStatistic) -> float:
    return float(found.influences @ found.influences) / len(found.influences) ** 2


@pytest.mark.parametrize(
    ("statistic", "resampled"),
    [
        (log_mean, lambda drawn: drawn.mean(axis=1)),
        (lambda values: log_quantile(values, 0.5), lambda drawn: np.quantile(drawn, 0.5, axis=1)),
        (lambda values: log_quantile(values, 0.9), lambda drawn: np.quantile(drawn, 0.9, axis=1)),
    ],
    ids=["mean", "p50", "p90"],
)
def test_mean_square_of_influences_is_the_bootstrap_variance(
    statistic: Callable[[Floats], LogStatistic], resampled: Callable[[Floats], Floats]
) -> None:
    """Over samples of 200 the two agree within a few percent on average."""
    rng = np.random.default_rng(1)
    ours, drawn = [], []
    for _ in range(60):
        values = rng.lognormal(sigma=0.5, size=200)
        ours.append(variance(statistic(values)))
        drawn.append(np.log(resampled(values[rng.integers(0, 200, (300, 200))])).var())
    assert np.mean(ours) == pytest.approx(np.mean(drawn), rel=0.12)


def test_logs_are_of_the_plain_statistics() -> None:
    """Mean, linear quantile, ratio of means; influences sum to zero for means."""
    values, others = np.array([1.0, 2.0, 3.0, 6.0]), np.array([2.0, 2.0, 4.0, 4.0])
    assert log_mean(values).log == pytest.approx(np.log(3))
    assert log_quantile(values, 0.5).log == pytest.approx(np.log(2.5))
    assert log_ratio_of_means(values, others).log == pytest.approx(0)
    assert log_ratio_of_means(values, others).influences.sum() == pytest.approx(0)


def test_values_in_proportion_leave_a_ratio_of_means_no_variance() -> None:
    """Requests that take twice as long and bring twice as much say nothing about the rate."""
    values = np.random.default_rng(2).lognormal(size=50)
    assert variance(log_ratio_of_means(3 * values, values)) == pytest.approx(0, abs=1e-30)
