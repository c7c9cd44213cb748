"""Concurrency from intervals."""

import numpy as np
import pytest

from loadgen.core.stats.intervals import InFlight


def in_flight(*pairs: tuple[float, float]) -> InFlight:
    return InFlight.of(np.array([start for start, _ in pairs]), np.array([end for _, end in pairs]))


def test_sequential_requests_within_a_second_peak_at_one() -> None:
    """Requests that do not overlap are never added up by the second they touch."""
    sequential = in_flight((0, 0.15), (0.2, 0.35), (0.4, 0.55), (0.6, 0.75), (0.8, 0.95))
    assert sequential.peak(0, 1) == 1


def test_an_end_comes_before_a_start_at_the_same_instant() -> None:
    """A slot that is filled at once holds one request."""
    assert in_flight((0, 1), (1, 2), (2, 3)).peak(0, 3) == 1


def test_peak_is_of_the_span_asked_for() -> None:
    """What was in flight before it counts only if it still is."""
    flights = in_flight((0, 10), (1, 2), (1, 3))
    assert flights.peak(0, 10) == 3
    assert flights.peak(2, 3) == 2
    assert flights.peak(5, 6) == 1
    assert flights.peak(20, 30) == 0


def test_mean_is_weighted_by_time() -> None:
    """Two requests for a quarter of the span and one for another quarter make 0.75."""
    assert in_flight((0, 2), (0, 1)).mean(0, 4) == pytest.approx(0.75)


def test_open_ended_pairs_and_empty_intervals_are_left_out() -> None:
    """A request that was never sent or never closed, or took no time, is in flight never."""
    nan = float("nan")
    assert in_flight((nan, 1), (0, nan), (3, 3)).peak(0, 5) == 0


def test_nothing_in_flight() -> None:
    """No intervals: a peak and means of zero; an empty span has no mean."""
    assert in_flight().peak(0, 1) == 0
    assert in_flight().mean(0, 1) == 0.0
    assert in_flight((0, 1)).mean(1, 1) is None


def test_means_of_bins() -> None:
    """Each bin has its own time-weighted mean."""
    assert in_flight((0, 1), (0.5, 1.5)).means(np.array([0, 0.5, 1, 1.5, 2])).tolist() == [1, 2, 1, 0]
