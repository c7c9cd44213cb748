"""Survival rates: what they sum to, how they are forced, how requests differ."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.simulation.survival import Survival, forced, from_conditional, normal_classes

conditionals = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(conditionals, st.integers(1, 12))
def test_the_mean_length_is_one_plus_the_sum_of_survival(rates: list[float], depth: int) -> None:
    """E[L] = 1 + sum r_i, and P(j accepted) = r_j - r_(j+1) gives the same mean."""
    survival = Survival(rates=from_conditional(rates, depth))
    ends = [*survival.rates, 0.0]
    before = [1.0, *survival.rates]
    shares = [a - b for a, b in zip(before, ends, strict=True)]
    assert math.fsum(shares) == pytest.approx(1)
    mean = math.fsum((accepted + 1) * share for accepted, share in enumerate(shares))
    assert survival.mean_length(depth) == pytest.approx(mean)
    assert 1 <= survival.mean_length(depth) <= depth + 1


@given(st.floats(0, 0.99), st.integers(1, 10))
def test_equal_acceptance_gives_the_textbook_length(alpha: float, tokens: int) -> None:
    """A constant conditional acceptance is (1 - alpha^(k+1)) / (1 - alpha)."""
    expected = (1 - alpha ** (tokens + 1)) / (1 - alpha)
    assert Survival(rates=from_conditional([alpha], tokens)).mean_length(tokens) == pytest.approx(expected)


@given(st.integers(1, 8).flatmap(lambda k: st.tuples(st.just(k), st.floats(1, k + 1))))
def test_a_forced_length_is_that_length_with_the_least_variance(case: tuple[int, float]) -> None:
    """The rates sum to the length, fall, and leave at most one position between 0 and 1."""
    tokens, length = case
    rates = forced(length, tokens)
    assert Survival(rates=rates).mean_length(tokens) == pytest.approx(length)
    assert sum(0 < rate < 1 for rate in rates) <= 1


def test_forced_2_8_with_three_draft_tokens() -> None:
    """The schedule that vLLM documents: 1, 0.8, 0."""
    assert forced(2.8, 3) == pytest.approx((1, 0.8, 0))


@pytest.mark.parametrize("length", [0.99, 4.01, math.nan])
def test_a_length_out_of_reach_is_refused(length: float) -> None:
    """Three draft tokens give 1 to 4 tokens a step; the message says so."""
    with pytest.raises(ValueError, match="from 1 to 4 with 3 draft tokens"):
        forced(length, 3)


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        ((0.5, 0.6), "do not rise.*0.6 after 0.5 at position 2"),
        ((1.2,), "between 0 and 1, got 1.2"),
        ((math.nan,), "got nan"),
    ],
)
def test_rates_that_cannot_be_are_refused(rates: tuple[float, ...], message: str) -> None:
    """Survival cannot rise and is a share."""
    with pytest.raises(ValueError, match=message):
        Survival(rates=rates)


def test_the_classes_of_requests_keep_the_mean() -> None:
    """However much requests differ, the mean over them stays 1 + sum r_i, and the pooled length is below it."""
    rates = from_conditional([0.7, 0.6], 10)
    for share in (0.05, 0.3, 0.6):
        survival = Survival(rates=rates, request_share=share)
        classes = survival.lengths(5)
        assert sum(weight for weight, _ in classes) == pytest.approx(1)
        assert sum(weight * length for weight, length in classes) == pytest.approx(survival.mean_length(5), rel=1e-4)
        assert survival.pooled_length(5) < survival.mean_length(5)
    assert Survival(rates=rates).pooled_length(5) == pytest.approx(Survival(rates=rates).mean_length(5))


def test_certain_rates_stay_certain_in_every_class() -> None:
    """A forced position is accepted by all requests alike."""
    survival = Survival(rates=(1.0, 1.0, 0.0), request_share=0.4)
    assert {round(length, 9) for _, length in survival.lengths(3)} == {3.0}


def test_quadrature_weights() -> None:
    """The classes of a standard normal have mean 0 and variance 1."""
    classes = list(normal_classes())
    assert sum(w for w, _ in classes) == pytest.approx(1)
    assert sum(w * z for w, z in classes) == pytest.approx(0, abs=1e-12)
    assert sum(w * z * z for w, z in classes) == pytest.approx(1)


def test_thresholds_cut_a_normal_at_the_rates() -> None:
    """The share of standard normal numbers above the i-th threshold is r_i; beyond the rates none is."""
    survival = Survival(rates=(0.8, 0.5, 0.1))
    luck = np.random.default_rng(5).standard_normal(200_000)
    accepted = np.searchsorted(survival.thresholds(5), luck)
    survivors = [(accepted >= position).mean() for position in range(1, 6)]
    assert survivors == pytest.approx([0.8, 0.5, 0.1, 0, 0], abs=0.005)
