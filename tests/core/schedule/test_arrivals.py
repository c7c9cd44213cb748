"""Arrival processes as tables of numbers."""

import itertools

import numpy as np
import pytest

from loadgen.core.schedule.arrivals import constant_offsets, gamma_offsets


def take(count: int, offsets: itertools.chain[int] | object) -> list[int]:
    return list(itertools.islice(offsets, count))  # type: ignore[call-overload]


def test_constant_spacing_never_accumulates_rounding() -> None:
    """Arrival i of 3 a second is at i/3 s to the nanosecond, also after a million."""
    assert take(4, constant_offsets(3.0)) == [0, 333_333_333, 666_666_667, 1_000_000_000]
    last = next(itertools.islice(constant_offsets(3.0), 3_000_000, None))
    assert last == 1_000_000 * 10**9


@pytest.mark.parametrize(("shape", "cv"), [(0.16, 2.5), (1.0, 1.0), (4.0, 0.5)])
def test_gamma_keeps_the_mean_gap_and_sets_its_variation(shape: float, cv: float) -> None:
    """The mean gap is 1/rate whatever the burstiness; the coefficient of variation is 1/sqrt(shape)."""
    gaps = np.diff(take(200_000, gamma_offsets(8.0, shape, np.random.default_rng(7)))) / 1e9
    assert gaps.mean() == pytest.approx(0.125, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03)


def test_infinite_burstiness_is_constant_spacing() -> None:
    """Infinity draws nothing and spaces evenly."""
    assert take(5, gamma_offsets(10.0, float("inf"), np.random.default_rng(1))) == take(5, constant_offsets(10.0))


def test_the_same_seed_gives_the_same_arrivals() -> None:
    """Arrivals repeat from the seed and differ for another."""
    first, again, other = (take(3000, gamma_offsets(5.0, 1.0, np.random.default_rng(seed))) for seed in (1, 1, 2))
    assert first == again != other
    assert first == sorted(first)
    assert first[0] == 0


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e-300, 1e300, float("inf"), float("nan")])
def test_a_rate_must_be_one_that_can_be_kept(rate: float) -> None:
    """A rate that no schedule can follow is refused."""
    with pytest.raises(ValueError, match="rate from"):
        next(constant_offsets(rate))


@pytest.mark.parametrize("shape", [0.0, -1.0, 1e-320, float("nan")])
def test_a_burstiness_must_leave_gaps_a_mean(shape: float) -> None:
    """Zero, negative and vanishing shapes are refused rather than divided by."""
    with pytest.raises(ValueError, match="burstiness of at least"):
        next(gamma_offsets(1.0, shape, np.random.default_rng(1)))
