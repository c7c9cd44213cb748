"""Shares of a plan: together they are the whole, and each has work for the slots that it has."""

from collections import Counter
from itertools import chain
from typing import Any

import pytest

from loadgen.core.errors import InternalError
from loadgen.core.request import Conversation, Endpoint, Phase, PlannedConversation, RequestTemplate, Text, Turn
from loadgen.core.schedule.arrivals import constant_offsets
from loadgen.core.schedule.plan import plan
from loadgen.core.schedule.share import Share


def planned(share: Share | None = None, **more: Any) -> list[PlannedConversation]:
    """Nine conversations of one, two and three turns in turn, at a rate."""
    conversations = (
        Conversation(turns=tuple(Turn(prompt=Text(text=f"{number}.{turn}")) for turn in range(1 + number % 3)))
        for number in range(9)
    )
    return list(
        plan(
            conversations,
            RequestTemplate(endpoint=Endpoint.CHAT, model="m"),
            request_id_prefix="run",
            offsets=constant_offsets(10.0),
            **({} if share is None else {"share": share}),
            **more,
        )
    )


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("slots", [None, 4, 5, 64])
def test_shares_are_together_the_whole_plan(workers: int, slots: int | None) -> None:
    """Every conversation once, with the numbers, names, phases, instants and bodies of the whole; some have none."""
    more = {"num_requests": 14, "warmup_requests": 2}
    shares = [planned(Share(index=index, count=workers), slots=slots, **more) for index in range(workers)]
    whole = planned(**more)
    assert sorted(chain.from_iterable(shares), key=lambda each: each.requests[0].seq) == whole
    assert sum(request.phase is Phase.MEASURE for each in whole for request in each.requests) == 14


@pytest.mark.parametrize(("workers", "slots"), [(2, 3), (2, 4), (3, 7), (4, 4), (3, 256)])
def test_every_slot_has_as_much_to_do(workers: int, slots: int) -> None:
    """Slots are split exactly, the first ones get what is left over, and conversations follow them."""
    shares = [Share(index=index, count=workers) for index in range(workers)]
    parts = [len(share.slots(slots)) for share in shares]
    assert sum(parts) == slots
    assert parts == sorted(parts, reverse=True)
    assert max(parts) - min(parts) <= 1
    conversations = Counter(
        share.index for number in range(100 * slots) for share in shares if share.has(number, slots=slots)
    )
    assert [conversations[share.index] for share in shares] == [100 * part for part in parts]


def test_a_share_that_cannot_be_is_a_fault() -> None:
    """The third of two."""
    with pytest.raises(InternalError, match="number 2 of 2"):
        Share(index=2, count=2)
