"""Student's t against printed tables."""

import math
from statistics import NormalDist

import pytest

from loadgen.core.stats.student import critical, inside_ratio


@pytest.mark.parametrize(
    ("confidence_ratio", "degrees", "expected"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.30265),
        (0.95, 4, 2.77645),
        (0.95, 8, 2.30600),
        (0.99, 3, 5.84091),
        (0.99, 30, 2.75000),
        (0.5, 5, 0.72669),
        (0.95, 120, 1.97993),
    ],
)
def test_critical_values_are_those_of_printed_tables(confidence_ratio: float, degrees: int, expected: float) -> None:
    """To the five places that tables give."""
    assert critical(confidence_ratio, degrees) == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 12.7, 1e6])
def test_one_degree_is_the_arc_tangent(t: float) -> None:
    """The Cauchy distribution has a closed form."""
    assert inside_ratio(t, 1) == pytest.approx(2 / math.pi * math.atan(t), abs=1e-12)


@pytest.mark.parametrize("degrees", [50, 1000, 100_000, 10**7])
def test_far_out_nothing_is_left(degrees: int) -> None:
    """However narrow the distribution is in the angle that is integrated over."""
    assert inside_ratio(1e4, degrees) == pytest.approx(1, abs=1e-8)


def test_many_degrees_are_the_normal_distribution() -> None:
    """A million requests."""
    assert critical(0.95, 10**6) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-5)
