"""Tokens a step by where in the output it began."""

import pytest

from loadgen.core.metrics.summary import OutputPositionBin
from tests.core.analysis.factory import answered
from tests.core.speculation.made import MadeServer, tallied


def test_bins_double_from_eight() -> None:
    """20 one-token steps begin at the output tokens 2 to 21: seven in 1-8, eight in 9-16, five in 17-32."""
    spec = tallied(answered(0, tokens=21), method="ngram")
    found = [(one.first, one.last, one.steps, one.requests, one.tokens_per_step) for one in spec.by_output_position]
    assert found == [(1, 8, 7, 1, 1.0), (9, 16, 8, 1, 1.0), (17, 32, 5, 1, 1.0)]


def test_a_step_belongs_to_the_bin_in_which_it_began() -> None:
    """Steps of 4 begin at 2, 6 and 10: the second reaches into the second bin and counts in the first."""
    spec = tallied(answered(0, tokens=13, event_tokens=(1, 4, 4, 4)))
    assert [(one.first, one.steps, one.tokens_per_step) for one in spec.by_output_position] == [
        (1, 2, 4.0),
        (9, 1, 4.0),
    ]


def test_a_first_event_of_several_tokens_moves_every_start() -> None:
    """Nine tokens at once: the only step begins at the tenth."""
    spec = tallied(answered(0, tokens=12, event_tokens=(9, 3)))
    assert [(one.first, one.steps) for one in spec.by_output_position] == [(9, 1)]


def test_listed_steps_hold_what_the_end_cut_off() -> None:
    """The server lists the last step with 5 tokens, of which 2 arrived; with a step that is not listed events count."""
    server = MadeServer()
    (listed,) = tallied(server.answer(0, (4,), cut=3)).by_output_position
    assert listed.tokens_per_step == 5.0
    (arrived,) = tallied(server.answer(0, (4, None), cut=0)).by_output_position
    assert arrived.tokens_per_step == pytest.approx(6 / 2)


def test_a_list_alone_is_enough() -> None:
    """Without the tokens of events the list says where steps began: at 2, 7, 9 and 10; if it makes up the answer."""
    server = MadeServer()
    spec = tallied(server.answer(0, (4, 1, 0, 4), event_tokens=None))
    found = [(one.first, one.steps, one.tokens_per_step) for one in spec.by_output_position]
    assert found == [(1, 2, 7 / 2), (9, 2, 6 / 2)]
    assert tallied(server.answer(0, (4, None, 4, 4), event_tokens=None)).by_output_position == ()


def test_an_oversize_event_moves_what_follows_and_is_no_step() -> None:
    """k = 4: an event of 9 is no step, and the one behind it begins at output token 11."""
    server = MadeServer()
    record = server.answer(0, (4, 4, 2), event_tokens=(1, 9, 3), speculation=None)
    spec = tallied(record, method="eagle3", draft_tokens=4)
    assert [(one.first, one.steps) for one in spec.by_output_position] == [(9, 1)]


def test_the_interval_is_over_requests() -> None:
    """Thirty requests that each accept all or nothing are thirty facts, however many steps they have."""

    def first_bin(steps: int) -> OutputPositionBin:
        server = MadeServer()
        return tallied(*(server.answer(seq, (4 * (seq % 2),) * steps) for seq in range(30))).by_output_position[0]

    one, two = first_bin(1), first_bin(2)
    assert (two.steps, two.requests, two.tokens_per_step) == (60, 30, 3.0)
    assert two.low < 3.0 < two.high
    assert (two.low, two.high) == pytest.approx((one.low, one.high))
    (few,) = tallied(MadeServer().answer(0, (1,))).by_output_position
    assert (few.low, few.high) == (None, None)
