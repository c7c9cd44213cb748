"""Each metric of one request against hand-made instants."""

from dataclasses import replace

import pytest

from loadgen.core.metrics.per_request import (
    REQUEST_METRICS,
    cap_wait_s,
    e2el_from_due_s,
    e2el_s,
    first_event_tokens,
    has_one_token_events,
    hides_reasoning,
    is_good,
    output_tokens,
    own_lag_s,
    schedule_lag_s,
    streamed_tokens,
    tpot_s,
    ttfo_s,
    ttft_from_due_s,
    ttft_s,
)
from loadgen.core.record import RequestRecord, TokenSource
from tests.core.analysis.factory import MS, answered, failed, unsent


def test_from_sent_and_from_due_stand_side_by_side() -> None:
    """A request sent 40 ms late: its TTFT is 100 ms, what its user waited 140 ms."""
    record = answered(0, sent_ms=1000, lag_ms=40, ttft_ms=100, gap_ms=20, tokens=6)
    assert schedule_lag_s(record) == pytest.approx(0.040)
    assert ttft_s(record) == pytest.approx(0.100)
    assert ttft_from_due_s(record) == pytest.approx(0.140)
    assert e2el_s(record) == pytest.approx(0.200)
    assert e2el_from_due_s(record) == pytest.approx(0.240)


def test_wait_for_the_cap_is_not_the_clients_own_lag() -> None:
    """Of 40 ms of lag 35 were spent waiting for a slot: the client itself was 5 ms late."""
    record = answered(0, sent_ms=1000, lag_ms=40, cap_wait_ns=35 * MS)
    assert cap_wait_s(record) == pytest.approx(0.035)
    assert own_lag_s(record) == pytest.approx(0.005)
    assert own_lag_s(answered(0, sent_ms=1000, lag_ms=40)) == pytest.approx(0.040)


def test_closed_loop_has_no_lag_and_nothing_from_due() -> None:
    """Without a due instant these have no value, rather than zero."""
    record = answered(0)
    assert [schedule_lag_s(record), own_lag_s(record), ttft_from_due_s(record), e2el_from_due_s(record)] == [None] * 4


def test_a_request_that_never_left_has_no_latency() -> None:
    """Dropped: no metric has a value."""
    dropped = unsent(0, cap_wait_ns=5 * MS)
    assert all(metric(dropped) is None for metric in REQUEST_METRICS.values())


def test_time_to_first_output_is_the_first_event_that_is_not_reasoning() -> None:
    """TTFT counts any channel; TTFO waits for the answer, and has no value if the limit fell inside the reasoning."""
    record = answered(0, ttft_ms=100, gap_ms=20, tokens=10)
    thinking = replace(record, first_output_ns=record.event_ns[7])
    assert ttft_s(thinking) == pytest.approx(0.100)
    assert ttfo_s(thinking) == pytest.approx(0.240)
    assert ttfo_s(replace(record, first_output_ns=None)) is None
    assert ttfo_s(record) == ttft_s(record)


def test_end_is_the_last_token_not_the_close() -> None:
    """Usage, [DONE] and the close come later and lengthen nothing."""
    record = answered(0, ttft_ms=100, gap_ms=17, tokens=11)
    late = replace(record, closed_ns=record.last_ns + 490 * MS)
    assert e2el_s(late) == pytest.approx(0.270)
    assert tpot_s(late) == pytest.approx(0.017)


def test_tpot_leaves_the_prompts_processing_out() -> None:
    """TTFT 2 s and 19 further tokens of 20 ms make 20 ms a token, not 119."""
    assert tpot_s(answered(0, ttft_ms=2000, gap_ms=20, tokens=20)) == pytest.approx(0.020)


def test_tpot_divides_by_tokens_not_by_events() -> None:
    """Three tokens an event, events 36 ms apart: 12 ms a token."""
    record = answered(0, gap_ms=36, tokens=31, per_event=3)
    assert len(record.event_ns) == 11
    assert tpot_s(record) == pytest.approx(0.012)


def test_tpot_needs_two_tokens() -> None:
    """One token has no time per token; it is not zero."""
    assert tpot_s(answered(0, tokens=1)) is None
    assert ttft_s(answered(0, tokens=1)) == pytest.approx(0.1)
    assert tpot_s(answered(0, tokens=5, output_tokens=1, event_tokens=None)) is None, "also when more events came"


def test_tpot_without_any_count_is_none() -> None:
    """Events are never taken for tokens."""
    uncounted = answered(0, output_tokens=None, output_tokens_from=None, event_tokens=None)
    assert streamed_tokens(uncounted) is None
    assert tpot_s(uncounted) is None


def test_the_servers_count_comes_first_and_the_streams_second() -> None:
    """100 spaces retokenise to 7 tokens somewhere; the server said 100."""
    record = answered(0, tokens=100)
    assert output_tokens(replace(record, event_tokens=(1,) * 7)) == 100
    assert output_tokens(replace(record, output_tokens=None, output_tokens_from=None)) == 100


def test_all_tokens_in_one_write_have_no_tpot() -> None:
    """320 tokens within 0.3 ms are not a million tokens a second."""
    record = answered(0, gap_ms=0.3, tokens=2, output_tokens=320, event_tokens=None)
    assert tpot_s(record) is None
    assert e2el_s(record) is not None


def test_hidden_reasoning_is_not_divided_by() -> None:
    """650 tokens of which 610 of reasoning were never streamed: 40 tokens took the time."""
    record = answered(0, ttft_ms=5000, gap_ms=20, tokens=40, output_tokens=650, reasoning_tokens=610, event_tokens=None)
    assert hides_reasoning(record)
    assert streamed_tokens(record) == 40
    assert tpot_s(record) == pytest.approx(0.020)
    assert output_tokens(record) == 650


def test_streamed_reasoning_is_part_of_the_output_once() -> None:
    """100 tokens with 60 of reasoning are 100 tokens, streamed in full."""
    record = answered(0, tokens=100, reasoning_tokens=60, event_tokens=None)
    thinking = replace(record, first_output_ns=record.event_ns[60])
    assert not hides_reasoning(thinking)
    assert streamed_tokens(thinking) == 100


@pytest.mark.parametrize(
    "changes",
    [
        {"reasoning_tokens": None},
        {"reasoning_tokens": 0},
        {"reasoning_tokens": 60},
        {"reasoning_tokens": 200, "event_tokens": None},
        {"reasoning_tokens": 60, "event_tokens": None, "first_output_ns": None},
        {"reasoning_tokens": 60, "streamed": False},
    ],
)
def test_reasoning_is_not_called_hidden_without_evidence(changes: dict[str, object]) -> None:
    """None counted; all of it in the events; counts that contradict each other; reasoning only; no stream."""
    assert not hides_reasoning(answered(0, tokens=100, **changes))


def test_a_fat_first_event_has_no_tpot() -> None:
    """Reasoning released in one piece before the output: the span saw 40 of 650 tokens."""
    record = answered(0, ttft_ms=5000, gap_ms=20, tokens=41, output_tokens=650, reasoning_tokens=610, event_tokens=None)
    in_one_piece = replace(record, first_output_ns=record.event_ns[1])
    assert first_event_tokens(in_one_piece) == 610
    assert tpot_s(in_one_piece) is None
    told = replace(record, reasoning_tokens=None, event_tokens=(610, *(1,) * 40))
    assert tpot_s(told) is None


def test_a_first_event_of_some_tokens_keeps_the_formula() -> None:
    """Four of 40 tokens in the first event: (last - first) / (N - 1), which a finding then qualifies."""
    record = answered(0, gap_ms=20, tokens=37, output_tokens=40, event_tokens=(4, *(1,) * 36))
    assert first_event_tokens(record) == 4
    assert tpot_s(record) == pytest.approx(0.720 / 39)


def test_a_reply_that_was_not_streamed_has_an_end_and_nothing_else() -> None:
    """A whole JSON body has no first token, and its TTFT is not its E2EL."""
    record = RequestRecord(
        **{name: getattr(answered(0), name) for name in ("seq", "request_id", "phase", "sent_ns", "outcome")},
        last_ns=3000 * MS,
        closed_ns=3001 * MS,
        output_tokens=20,
        output_tokens_from=TokenSource.SERVER,
        streamed=False,
    )
    assert e2el_s(record) == pytest.approx(3.0)
    assert [ttft_s(record), ttfo_s(record), tpot_s(record), ttft_from_due_s(record)] == [None] * 4


def test_a_stream_that_told_only_usage_has_no_ttft() -> None:
    """Tokens were counted and none was seen: no value, not zero."""
    silent = answered(
        0, first_ns=None, first_output_ns=None, last_ns=None, event_ns=(), event_tokens=None, output_tokens=20
    )
    assert [ttft_s(silent), tpot_s(silent), e2el_s(silent)] == [None] * 3


@pytest.mark.parametrize(
    ("record", "one"),
    [
        (answered(0, tokens=10), True),
        (answered(0, tokens=10, per_event=3), False),
        (answered(0, tokens=10, event_tokens=None), True),
        (answered(0, tokens=10, event_tokens=None, output_tokens=11), False),
        (answered(0, tokens=10, event_tokens=None, output_tokens=None), False),
    ],
)
def test_gaps_are_between_tokens_only_when_every_event_held_one(record: RequestRecord, one: bool) -> None:
    """Told by the stream, or because as many tokens were counted as events came; else not claimed."""
    assert has_one_token_events(record) is one


def test_good_means_completed_and_every_objective_met() -> None:
    """At the limit is good; over it, a failure or a missing value is not."""
    record = answered(0, ttft_ms=500, gap_ms=50, tokens=10)
    assert is_good(record, {"ttft_s": 0.5, "tpot_s": 0.05})
    assert not is_good(record, {"ttft_s": 0.499, "tpot_s": 0.05})
    assert not is_good(failed(0), {"ttft_s": 0.5})
    assert not is_good(unsent(0), {})


def test_a_one_token_answer_is_not_good_under_a_tpot_objective() -> None:
    """A required metric without a value is not good: it is not taken for zero."""
    assert not is_good(answered(0, tokens=1), {"tpot_s": 0.05})
    assert is_good(answered(0, tokens=1), {"ttft_s": 0.5})


def test_seconds_of_a_known_service() -> None:
    """80 ms are 0.08 in a field that ends in _s."""
    assert e2el_s(answered(0, ttft_ms=80, tokens=1)) == 0.08
