"""Requests made ready ahead of the clock."""

from collections.abc import Iterator

import pytest

from loadgen.core.request import Phase, PlannedConversation, PlannedRequest, Text, Turn
from loadgen.engine.lookahead import Lookahead


def planned(count: int, *, body: bytes | None = b"x" * 100) -> Iterator[PlannedConversation]:
    for seq in range(count):
        turn = Turn(prompt=Text(text="q"))
        request = PlannedRequest(seq=seq, request_id=f"r-{seq}", phase=Phase.MEASURE, due_ns=None, body=body, turn=turn)
        yield PlannedConversation(requests=(request,))


def seqs(lookahead: Lookahead) -> list[int]:
    found = []
    while (ready := lookahead.next()) is not None:
        found.append(ready.planned.requests[0].seq)
    return found


@pytest.mark.parametrize(("limits", "ready"), [({"max_requests": 5}, 5), ({"max_bytes": 250}, 3), ({}, 20)])
def test_it_is_filled_up_to_a_bound_and_keeps_the_order(limits: dict[str, int], ready: int) -> None:
    """By requests or by bytes, whichever comes first; every request comes once, in its order."""
    lookahead = Lookahead(planned(20), lambda body, request_id: request_id, **limits)
    while lookahead.top_up():
        pass
    assert lookahead.size == ready
    assert seqs(lookahead) == list(range(20))
    assert lookahead.next() is None


def test_a_request_that_was_not_ready_is_counted() -> None:
    """Three were prepared in time; the other four are prepared when they are wanted, which costs their send time."""
    lookahead = Lookahead(planned(7), lambda body, request_id: request_id)
    for _ in range(3):
        lookahead.top_up()
    assert seqs(lookahead) == list(range(7))
    assert lookahead.late == 4


def test_a_body_that_depends_on_an_answer_is_not_prepared() -> None:
    """It is made when the answer is there."""
    lookahead = Lookahead(planned(1, body=None), lambda body, request_id: pytest.fail("prepared without a body"))
    ready = lookahead.next()
    assert ready is not None
    assert ready.prepared == [None]


def test_the_rest_is_handed_out_once_and_unprepared() -> None:
    """What was ready and what was not, in order; afterwards there is nothing."""
    prepared: list[str] = []
    lookahead = Lookahead(planned(6), lambda body, request_id: prepared.append(request_id))
    lookahead.top_up()
    lookahead.top_up()
    rest = lookahead.rest()
    assert next(rest).requests[0].seq == 0
    assert not lookahead.top_up(), "nothing is taken from the plan behind the reader's back"
    assert [conversation.requests[0].seq for conversation in rest] == [1, 2, 3, 4, 5]
    assert prepared == ["r-0", "r-1"]
