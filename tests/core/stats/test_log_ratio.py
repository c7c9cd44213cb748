"""Variance between starts and between requests."""

import math

import numpy as np
import pytest

from loadgen.core.stats.influence import LogStatistic, log_mean
from loadgen.core.stats.log_ratio import FARTHEST_RATIO, log_ratio
from loadgen.core.stats.student import critical


def starts(*means: float, n: int = 100) -> list[LogStatistic]:
    """Starts whose requests all take the same."""
    return [log_mean(np.full(n, mean)) for mean in means]


def test_starts_alone_make_the_interval_of_welchs_test() -> None:
    """Two groups of logarithms, each with its own variance and R - 1 degrees of freedom."""
    found = log_ratio(starts(1.0, 1.1, 1.2), starts(0.5, 0.6, 0.55))
    before, after = np.log([1.0, 1.1, 1.2]), np.log([0.5, 0.6, 0.55])
    first, second = before.var(ddof=1) / 3, after.var(ddof=1) / 3
    degrees = (first + second) ** 2 / ((first**2 + second**2) / 2)
    half = critical(0.95, degrees) * math.sqrt(first + second)
    middle = after.mean() - before.mean()
    estimate = found.estimate()
    assert estimate.value == pytest.approx(math.exp(middle))
    assert (estimate.low, estimate.high) == pytest.approx((math.exp(middle - half), math.exp(middle + half)))


def test_starts_of_one_arm_alone_have_its_degrees_of_freedom() -> None:
    """A baseline that is the same at every start tells nothing of how the arm's starts scatter."""
    assert log_ratio(starts(1.0, 1.0), starts(0.5, 0.6)).degrees == pytest.approx(1)
    assert log_ratio(starts(1.0, 1.0, 1.0), starts(0.5, 0.6, 0.6)).degrees == pytest.approx(2)


def test_one_start_has_the_interval_of_paired_differences() -> None:
    """The t interval of the requests' differences; and no variance between starts, which is not 0 but not known."""
    rng = np.random.default_rng(3)
    before = rng.lognormal(sigma=0.3, size=80)
    after = before * rng.lognormal(sigma=0.1, size=80)
    found = log_ratio([log_mean(before)], [log_mean(after)])
    difference = after / after.mean() - before / before.mean()
    assert found.start_variance is None
    assert found.request_variance == pytest.approx(difference.var(ddof=1) / 80)
    assert found.estimate().high == pytest.approx(
        after.mean() / before.mean() * math.exp(critical(0.95, 79) * difference.std(ddof=1) / math.sqrt(80))
    )


def test_what_requests_do_to_both_arms_alike_cancels() -> None:
    """Heavy and light requests, the same in both arms and at each start, widen nothing."""
    heavy = np.random.default_rng(3).lognormal(sigma=1.0, size=200)
    found = log_ratio([log_mean(heavy)] * 2, [log_mean(0.5 * heavy)] * 2)
    assert found.estimate().value == pytest.approx(0.5)
    assert found.estimate().low == pytest.approx(0.5)


def test_what_requests_do_to_one_arm_alone_is_not_averaged_out_by_starts() -> None:
    """Requests that suit the arm more or less are the same at each start: ten starts know them no better than two."""
    rng = np.random.default_rng(3)
    heavy, suits = rng.lognormal(sigma=0.5, size=200), rng.lognormal(sigma=0.3, size=200)
    found = [log_ratio([log_mean(heavy)] * n, [log_mean(heavy * suits)] * n).request_variance for n in (2, 10)]
    assert found[0] == pytest.approx(found[1])
    assert found[0] == pytest.approx(np.var(heavy * suits / (heavy * suits).mean() - heavy / heavy.mean()) / 199)


def test_noise_of_single_answers_is_counted_once() -> None:
    """It is between starts already; the share of requests is left with next to nothing of it."""
    rng = np.random.default_rng(3)
    sides = [[log_mean(rng.lognormal(sigma=0.5, size=2000)) for _ in range(4)] for _ in range(2)]
    found = log_ratio(*sides)
    noise = 2 / 4 * (math.exp(0.25) - 1) / 2000
    assert found.request_variance < 0.2 * noise


def test_many_requests_lend_their_degrees_of_freedom() -> None:
    """The more of the variance is between requests, the less it matters that starts are few."""
    rng = np.random.default_rng(3)
    heavy, suits = rng.lognormal(sigma=0.5, size=200), rng.lognormal(sigma=0.3, size=200)

    def degrees(spread: float) -> float:
        sides = [[log_mean(heavy), log_mean(heavy * (1 + spread))] for _ in range(2)]
        sides[1] = [log_mean(heavy * suits), log_mean(heavy * suits * (1 + spread))]
        return log_ratio(*sides).degrees

    assert degrees(0.0) == pytest.approx(199)
    assert degrees(0.01) > 50
    assert degrees(1.0) == pytest.approx(2, abs=0.1)


def test_inverse_and_multiples_keep_the_width() -> None:
    """Baseline over arm is arm over baseline upside down."""
    found = log_ratio(starts(1.0, 1.1), starts(0.5, 0.6))
    estimate, inverse, triple = found.estimate(), found.inverse().estimate(), found.times(3).estimate()
    assert (inverse.low, inverse.high) == pytest.approx((1 / estimate.high, 1 / estimate.low))
    assert (triple.value, triple.low) == pytest.approx((3 * estimate.value, 3 * estimate.low))


def test_identical_runs_have_a_point_for_an_interval() -> None:
    """Virtual time without noise: nothing varies, nothing is divided by zero."""
    estimate = log_ratio(starts(1.0, 1.0), starts(2.0, 2.0)).estimate()
    assert estimate.low == estimate.value == estimate.high == pytest.approx(2)


def test_an_interval_without_bounds_is_finite() -> None:
    """Of two starts one took fifty times as long: at one degree of freedom, as one level of many, the ends are beyond
    any float, and still stand on both sides of the value."""
    found = log_ratio(starts(0.03, 0.03), starts(0.03, 1.5))
    for side in (found, found.inverse()):
        estimate = side.estimate(1 - 0.05 / 32)
        assert (estimate.low, estimate.high) == pytest.approx((1 / FARTHEST_RATIO, FARTHEST_RATIO))
    beyond = found.times(1e9).estimate()
    assert beyond.low <= beyond.value <= beyond.high
    assert beyond.low < 1
