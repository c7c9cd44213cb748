"""Whether a capacity changed: by the noise of the results before it, and not by less than a step of the search."""

import math

import numpy as np
import pytest

from loadgen.service.history.changes import Change, judged


def test_few_results_say_nothing() -> None:
    """Three results before are not enough to call a fourth one changed."""
    assert judged(1, [100, 100, 100], resolution_ratio=0.1).change is Change.TOO_FEW


@pytest.mark.parametrize(
    ("level", "change"),
    [(100, Change.NONE), (92, Change.NONE), (110, Change.NONE), (85, Change.LOWER), (120, Change.HIGHER)],
)
def test_a_step_of_the_search_is_no_change(level: float, change: Change) -> None:
    """Results that are all the same have no noise; even so, a difference within a step is none, beyond it is one."""
    assert judged(level, [100] * 10, resolution_ratio=0.1).change is change


def test_no_capacity_at_all_is_lower() -> None:
    """When not even the first level passes any more, that is a regression."""
    assert judged(None, [64] * 5, resolution_ratio=0.1).change is Change.LOWER


def test_one_odd_night_hides_nothing() -> None:
    """An outlier among those before widens the range of the unchanged by little."""
    judgement = judged(60, [100, 101, 99, 100, 20, 100, 101, 99], resolution_ratio=0.05)
    assert judgement.change is Change.LOWER
    assert judgement.expected == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("spread", [0.02, 0.1, 0.3])
def test_unchanged_results_are_seldom_called_changed(spread: float) -> None:
    """Of results that vary by chance alone about one in a hundred is called changed, and at most one in thirty."""
    generator = np.random.default_rng(1)
    calls = [
        judged(float(row[-1]), [float(each) for each in row[:-1]], resolution_ratio=0.0).change is not Change.NONE
        for row in np.exp(generator.normal(math.log(50), spread, size=(2000, 21)))
    ]
    assert np.mean(calls) < 1 / 30


def test_a_real_change_is_seen_through_noise() -> None:
    """A fall by a third shows in at least nine of ten, where results vary by a tenth of one."""
    generator = np.random.default_rng(2)
    rows = np.exp(generator.normal(math.log(50), 0.07, size=(500, 21)))
    seen = [
        judged(float(row[-1]) * 2 / 3, [float(each) for each in row[:-1]], resolution_ratio=0.1).change is Change.LOWER
        for row in rows
    ]
    assert np.mean(seen) > 0.9
