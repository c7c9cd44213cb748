"""How far another machine's clock is ahead."""

import numpy as np

from loadgen.locustio.clocks import ClockEstimate


def test_nothing_is_known_before_an_answer() -> None:
    """Neither how far, nor how well."""
    clock = ClockEstimate()
    assert (clock.answers, clock.ahead_ns, clock.within_ns) == (0, None, None)


def test_the_quickest_answer_is_believed() -> None:
    """Whatever way there and back took, the truth lies within half of it."""
    draw, ahead_ns = np.random.default_rng(7), -3_000_000_000
    clock = ClockEstimate()
    for asked_ns in range(0, 20_000_000_000, 1_000_000_000):
        there_ns, back_ns = (int(way) for way in draw.exponential(2_000_000, 2) + 100_000)
        told_ns = asked_ns + there_ns + ahead_ns
        clock.add(asked_ns=asked_ns, told_ns=told_ns, heard_ns=asked_ns + there_ns + back_ns)
    assert clock.ahead_ns is not None
    assert clock.within_ns is not None
    assert abs(clock.ahead_ns - ahead_ns) <= clock.within_ns < 2_000_000


def test_old_answers_are_forgotten() -> None:
    """Clocks drift: an answer of long ago is not believed for ever, however quick it was."""
    clock = ClockEstimate()
    clock.add(asked_ns=0, told_ns=0, heard_ns=2)
    for asked_ns in range(1_000, 101_000, 1_000):
        clock.add(asked_ns=asked_ns, told_ns=asked_ns + 510, heard_ns=asked_ns + 20)
    assert clock.ahead_ns == 500
