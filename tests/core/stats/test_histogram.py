"""Histograms: which bucket a value is counted in, and that batches do not matter."""

import math
from itertools import pairwise

import numpy as np
import pytest

from loadgen.core.stats.histogram import NATIVE_SCHEMA, Exemplar, Histogram, geometric_bounds


def of(*values: float, bounds: tuple[float, ...] = (0.1, 0.2, 0.4)) -> Histogram:
    """A histogram of these values."""
    histogram = Histogram(bounds)
    histogram.observe(np.array(values, dtype=np.float64))
    return histogram


@pytest.mark.parametrize(("low", "high"), [(0.001, 120.0), (0.0002, 5.0)])
def test_bounds_grow_by_a_quarter(low: float, high: float) -> None:
    """From the first to the last, each about 1.25 times the one before, and only the last one nearer."""
    bounds = geometric_bounds(low, high)
    assert (bounds[0], bounds[-1]) == (low, high)
    steps = [after / before for before, after in pairwise(bounds)]
    assert steps[:-1] == pytest.approx([1.25] * (len(steps) - 1), rel=0.01)
    assert 1 < steps[-1] <= 1.26


def test_a_bound_belongs_to_its_bucket() -> None:
    """Prometheus' `le`: less or equal. What lies above all bounds is counted last."""
    assert of(0.05, 0.1, 0.1000001, 0.4, 0.5).counts == [2, 1, 1, 1]


def test_native_buckets_hold_what_lies_in_them() -> None:
    """Bucket i is of values above base^(i - 1), up to base^i; 0 is apart."""
    values = np.geomspace(1e-7, 1e3, 5000)
    histogram = of(0.0, *values)
    assert histogram.zeros == 1
    assert sum(histogram.native.values()) == len(values)
    base = 2 ** (2**-NATIVE_SCHEMA)
    for index, count in histogram.native.items():
        assert count == np.sum((values > base ** (index - 1)) & (values <= base**index))


def test_a_power_of_two_ends_its_bucket() -> None:
    """An upper bound is part of the bucket, as with classic ones."""
    assert of(1.0, 2.0).native == {0: 1, 2**NATIVE_SCHEMA: 1}


def test_batches_add_up() -> None:
    """Values one by one, in two batches and all at once come to the same."""
    values = np.random.default_rng(1).lognormal(-3, 1, 1000)
    whole, single = of(*values), of()
    for value in values:
        single.observe(np.array([value]))
    assert (single.counts, single.native) == (whole.counts, whole.native)
    assert single.sum == pytest.approx(whole.sum) == pytest.approx(values.sum())
    assert whole.count == 1000


def test_no_values_change_nothing() -> None:
    """An empty batch is none."""
    empty = of()
    assert (empty.count, empty.sum, empty.native, empty.zeros) == (0, 0.0, {}, 0)


def test_size_follows_the_range_not_the_number() -> None:
    """A million values over a factor of ten take 107 native buckets at most."""
    values = np.random.default_rng(2).uniform(0.01, 0.1, 1_000_000)
    assert len(of(*values[:10]).native) <= len(of(*values).native) <= math.ceil(math.log2(10) * 2**NATIVE_SCHEMA) + 1


def test_a_bucket_keeps_its_latest_exemplar() -> None:
    """One for each bucket, also for the one above all bounds; a copy has none."""
    histogram = of(0.1, 0.05, 9.0)
    for number, value in enumerate((0.1, 0.05, 9.0)):
        histogram.mark(Exemplar(value=value, request_id=str(number), unix_s=1.0))
    assert {place: exemplar.request_id for place, exemplar in histogram.exemplars.items()} == {0: "1", 3: "2"}
    assert histogram.as_counted().exemplars == {}
    assert histogram.as_counted().counts == histogram.counts


def test_histograms_add_up() -> None:
    """To the one of all values; a snapshot of before stays as it was."""
    first, second, both = of(0.0, 0.1, 0.3), of(0.3, 7.0), of(0.0, 0.1, 0.3, 0.3, 7.0)
    before = first.as_counted()
    first.add(second)
    assert (first.counts, first.native, first.zeros) == (both.counts, both.native, both.zeros)
    assert first.sum == pytest.approx(both.sum)
    assert before.counts == of(0.0, 0.1, 0.3).counts
