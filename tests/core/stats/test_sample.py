"""Pooled samples."""

import numpy as np
import pytest

from loadgen.core.stats.quantiles import quantile
from loadgen.core.stats.sample import Sample, merged


def test_an_empty_sample_is_an_empty_array() -> None:
    """No values, no error."""
    assert len(Sample().ascending()) == 0


def test_values_come_back_sorted() -> None:
    """Whatever the order and the number of pieces."""
    sample = Sample()
    sample.extend(np.array([30, 10]))
    sample.extend(np.array([20]))
    assert sample.ascending().tolist() == [10.0, 20.0, 30.0]
    assert len(sample) == 3


def test_nanoseconds_of_a_usual_gap_are_exact() -> None:
    """A gap of 20 ms survives four bytes to the nanosecond."""
    sample = Sample()
    sample.extend(np.array([20_000_000]))
    assert float(sample.ascending()[0]) / 1e9 == 0.02


def test_no_value_is_added_after_it_was_read() -> None:
    """A view that was handed out never changes behind the reader's back."""
    sample = Sample()
    sample.extend(np.array([1]))
    view = sample.ascending()
    with pytest.raises(BufferError):
        sample.extend(np.array([2]))
    assert view.tolist() == [1.0]


def test_percentile_of_merged_workers_comes_from_merged_values() -> None:
    """400 values of 20 ms and 8 of 900 ms have a p95 of 20 ms; the workers' own p95 average or maximum would not."""
    first, second = Sample(), Sample()
    first.extend(np.full(400, 20))
    second.extend(np.full(8, 900))
    assert quantile(merged(first.ascending(), second.ascending()), 0.95) == 20.0
