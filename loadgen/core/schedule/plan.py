"""A plan: conversations with their place in time, numbered and encoded, as an iterator."""

from collections.abc import Iterator
from itertools import islice

from loadgen.core.errors import ConfigError
from loadgen.core.request import (
    Conversation,
    Phase,
    PlannedConversation,
    PlannedRequest,
    RequestTemplate,
)
from loadgen.core.schedule.bodies import encode_body
from loadgen.core.schedule.share import WHOLE, Share


def plan(
    conversations: Iterator[Conversation],
    template: RequestTemplate,
    *,
    request_id_prefix: str,
    offsets: Iterator[int] | None = None,
    replay: bool = False,
    num_requests: int | None = None,
    warmup_requests: int = 0,
    share: Share = WHOLE,
    slots: int | None = None,
) -> Iterator[PlannedConversation]:
    """Numbers, times and encodes conversations.

    With `offsets` (ns) each conversation's first turn is due at the next offset, and its later turns after the answer
    before them. With `replay` each turn is due at its own offset. With neither there are no due times. The first
    `warmup_requests` are warm-up; `num_requests` counts the others. A conversation is cut where the count is reached.
    Of a plan that several processes drive with so many `slots` in all only the conversations of the `share` are given,
    numbered and timed as in the whole.
    Raises ConfigError for a turn without a time in a replay.
    """
    seq = 0
    limit = None if num_requests is None else num_requests + warmup_requests
    for number, conversation in enumerate(conversations):
        if limit is not None and seq >= limit:
            return
        turns = conversation.turns if limit is None else tuple(islice(conversation.turns, limit - seq))
        first_offset = next(offsets) if offsets is not None else None
        if not share.has(number, slots=slots):
            seq += len(turns)
            continue
        requests = []
        for index, turn in enumerate(turns):
            due_ns = first_offset if index == 0 else None
            if replay:
                if turn.offset_ns is None and index == 0:
                    raise ConfigError("--replay needs data with time stamps; give --concurrency or --request-rate")
                due_ns = turn.offset_ns
            if index == 0 and turn.continues_answers:
                raise ConfigError("a conversation cannot begin with a turn that continues from an answer")
            requests.append(
                PlannedRequest(
                    seq=seq,
                    request_id=f"{request_id_prefix}-{seq}",
                    phase=Phase.WARMUP if seq < warmup_requests else Phase.MEASURE,
                    due_ns=due_ns,
                    body=None if turn.continues_answers else encode_body(template, turn),
                    turn=turn,
                    session_id=conversation.session_id,
                    turn_index=index if len(conversation.turns) > 1 or conversation.session_id is not None else None,
                    category=conversation.category,
                )
            )
            seq += 1
        yield PlannedConversation(requests=tuple(requests))
