"""The plateau of a run."""

import numpy as np
import pytest

from loadgen.core.stats.steady import longest_run, outer_span, plateau


@pytest.mark.parametrize(
    ("wanted", "run", "span"),
    [
        ([], None, None),
        ([False, False], None, None),
        ([True], (0, 1), (0, 1)),
        ([False, True, True, False, True], (1, 3), (1, 5)),
        ([True, False, True], (0, 1), (0, 3)),
        ([True, False, True, True, True, False], (2, 5), (0, 5)),
    ],
)
def test_stretches(wanted: list[bool], run: tuple[int, int] | None, span: tuple[int, int] | None) -> None:
    """The longest unbroken stretch, and the outermost."""
    assert longest_run(np.array(wanted, dtype=bool)) == run
    assert outer_span(np.array(wanted, dtype=bool)) == span


def test_closed_loop_leaves_ramp_and_drain_out() -> None:
    """The plateau is the level that the loop holds; a dip below nine tenths ends it."""
    levels = np.array([2, 6, 10, 10, 9.5, 10, 10, 6, 1, 1, 1], dtype=float)
    assert plateau(levels, closed_loop=True) == (2, 7)


def test_open_loop_wanders_around_its_mean() -> None:
    """Dips inside an open loop do not break its plateau; the climb at its start is outside."""
    levels = np.array([0.5, 2, 5, 3, 7, 4, 6, 5, 3, 5], dtype=float)
    assert plateau(levels, closed_loop=False) == (2, 10)


def test_nothing_in_flight_has_no_plateau() -> None:
    """No load, no steady state."""
    assert plateau(np.zeros(10), closed_loop=True) is None
    assert plateau(np.zeros(0), closed_loop=False) is None
