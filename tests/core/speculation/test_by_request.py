"""Acceptance request by request, and what TPOT makes of it."""

import random

import pytest

from loadgen.core.speculation.by_request import POINTS_MOST
from tests.core.analysis.factory import answered
from tests.core.speculation.made import MadeServer, tallied


def test_the_mean_over_requests_is_not_the_pooled_figure() -> None:
    """Answers of 12 tokens in 3 and in 12 steps: 2.5 a request on average, 24 / 15 = 1.6 a step: the harmonic mean."""
    server = MadeServer()
    spec = tallied(server.answer(0, (3, 3, 3)), server.answer(1, (0,) * 12))
    assert spec.per_request.acceptance_length.mean == spec.per_request.tokens_per_step.mean == 2.5
    assert spec.acceptance_length == spec.tokens_per_step == pytest.approx(2 / (1 / 4 + 1 / 1))


def test_lengths_are_of_blocks_and_tokens_per_step_of_all_steps() -> None:
    """A request that drafted once in four steps: 5 of that step, 8 / 4 over all; percentiles as the sample carries."""
    spec = tallied(MadeServer().answer(0, (4, None, None, None)))
    assert (spec.per_request.acceptance_length.p50, spec.per_request.tokens_per_step.p50) == (5.0, 2.0)
    assert spec.per_request.acceptance_length.p90 is None


def test_requests_without_a_value_are_missing() -> None:
    """No block, no tokens of events: counted as missing, not as 1; nothing known of any, nothing said."""
    server = MadeServer()
    spec = tallied(server.answer(0, (2, 2)), server.answer(1, (2, 2), speculation=None, event_tokens=None))
    assert (spec.per_request.acceptance_length.n, spec.per_request.acceptance_length.missing) == (1, 1)
    assert (spec.per_request.tokens_per_step.n, spec.per_request.tokens_per_step.missing) == (1, 1)


def speeds(n: int, *, step_ms: float = 20.0) -> list:
    """Answers of events of 1 to 4 tokens, each event `step_ms` after the one before."""
    return [answered(seq, tokens=1 + 60, per_event=1 + seq % 4, gap_ms=step_ms) for seq in range(n)]


def test_a_step_of_constant_time_has_slope_minus_one() -> None:
    """TPOT = 20 ms / tokens per step."""
    found = tallied(*speeds(40)).tpot_by_acceptance
    assert (found.n, found.slope.n) == (40, 40)
    assert (found.slope.value, found.slope.low, found.slope.high) == pytest.approx((-1.0, -1.0, -1.0))
    assert found.correlation == pytest.approx(-1.0)
    assert {(one.tokens_per_step, round(one.tpot_s, 9)) for one in found.points} == {
        *((1.0, 0.02), (2.0, 0.01), (3.0, round(0.02 / 3, 9)), (4.0, 0.005)),
    }


def test_steps_that_take_longer_bring_the_slope_to_zero() -> None:
    """When a step takes as much longer as it emits more, TPOT does not fall."""
    records = [
        answered(seq, tokens=1 + 60, per_event=1 + seq % 4, gap_ms=20.0 * (1 + seq % 4) + 0.001 * seq)
        for seq in range(40)
    ]
    assert tallied(*records).tpot_by_acceptance.slope.value == pytest.approx(0.0, abs=0.01)


def test_few_requests_have_points_and_no_slope() -> None:
    """Four requests are four points."""
    found = tallied(*speeds(4)).tpot_by_acceptance
    assert (found.n, len(found.points), found.slope, found.correlation) == (4, 4, None, None)


def test_points_are_bounded_and_do_not_depend_on_the_order() -> None:
    """2,000 requests leave 500 points from the slowest to the fastest, the same ones in whatever order they ended."""
    records = [
        answered(seq, tokens=1 + 60, per_event=1 + seq % 4, gap_ms=20.0 + 0.001 * (seq * 7919 % 2000))
        for seq in range(2000)
    ]
    first = tallied(*records).tpot_by_acceptance
    random.Random(5).shuffle(records)
    assert tallied(*records).tpot_by_acceptance == first
    assert len(first.points) == POINTS_MOST
    assert (first.points[0].tokens_per_step, first.points[-1].tokens_per_step) == (1.0, 4.0)


def test_no_request_with_both_numbers_has_no_join() -> None:
    """One decode step in one event has no TPOT to join."""
    spec = tallied(MadeServer().answer(0, (2, 2), event_tokens=None))
    assert spec.tpot_by_acceptance is None
