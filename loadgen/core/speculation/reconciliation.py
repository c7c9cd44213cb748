"""The origins of acceptance against one another, each difference beside what their definitions explain.

Counters are of the whole run and hold warm-up and requests that failed, so they are compared with all requests of the
run. What a request without a block, or a token that no event shows, may have added is bounded and allowed, no more.
"""

from collections.abc import Iterator

from loadgen.core.metrics.summary import Comparison
from loadgen.core.server.sample import Counters
from loadgen.core.speculation.pool import RequestPool
from loadgen.core.speculation.views import Origin


def compared(
    everything: RequestPool, counters: Counters | str | None, *, draft_tokens: int | None
) -> tuple[Comparison, ...]:
    """Every pair of origins that the run has.

    `everything` are all requests of the run. `counters` are the differences over a span that holds all of them, in
    words why there are none that can be compared, or None when the server was not asked. `draft_tokens` is the most
    that a step drafts.
    """
    found: list[Comparison] = []
    if isinstance(counters, Counters):
        found += _counters_and_blocks(counters, everything, draft_tokens)
        found += _counters_and_stream(counters, everything)
    elif counters is not None:
        found += _not_comparable(everything, counters)
    found += _blocks_and_stream(everything)
    return tuple(found)


def _not_comparable(pool: RequestPool, why: str) -> Iterator[Comparison]:
    if pool.with_block:
        yield _comparison(Origin.COUNTERS, Origin.PER_REQUEST, "steps", None, pool.blocks.steps, None, why)
    if pool.with_steps:
        yield _comparison(Origin.COUNTERS, Origin.STREAM, "decode_steps", None, pool.steps.steps, None, why)


def _counters_and_blocks(counters: Counters, pool: RequestPool, draft_tokens: int | None) -> Iterator[Comparison]:
    """The same steps counted twice: equal, but for requests that have no block."""
    if not pool.with_block:
        return
    tokens = pool.uncounted_tokens
    if pool.without_block and (tokens is None or draft_tokens is None):
        most, drafted, accepted = None, None, None
        why = f"{pool.without_block} requests have no block, and nothing bounds what they added."
    elif pool.without_block:
        assert tokens is not None
        assert draft_tokens is not None
        most, drafted, accepted = tokens, tokens * draft_tokens, tokens + pool.without_block * draft_tokens
        why = (
            f"The same steps, but for {pool.without_block} requests without a block: they decoded at most {tokens}"
            " tokens, one or more a step."
        )
    else:
        most, drafted, accepted = 0, 0, 0
        why = "The same steps: every request that decoded has a block."
    steps = counters.verify_steps if counters.drafts is None else counters.drafts
    for quantity, left, right, bound in (
        ("steps", steps, pool.blocks.steps, most),
        ("drafted_tokens", counters.drafted_tokens, pool.blocks.drafted_tokens, drafted),
        ("accepted_tokens", counters.accepted_tokens, pool.blocks.accepted_tokens, accepted),
    ):
        if left is not None and right is not None:
            allowed = None if bound is None else (0.0, float(bound))
            yield _comparison(Origin.COUNTERS, Origin.PER_REQUEST, quantity, left, right, allowed, why)


def _counters_and_stream(counters: Counters, pool: RequestPool) -> Iterator[Comparison]:
    """Every decode step is an event, but for steps whose tokens no event shows by themselves."""
    decode_steps = counters.verify_steps if counters.decode_steps is None else counters.decode_steps
    steps, accepted, unseen = pool.steps.steps, pool.steps.accepted_tokens, pool.unseen_tokens
    if decode_steps is None or not steps or accepted is None:
        return
    if counters.decode_steps is None and pool.broke_off:
        unseen = None
        why = (
            "The server counts verification steps when a request ends: nothing says whether those of"
            f" {pool.broke_off} requests that broke off are among them."
        )
    elif unseen is None:
        why = "Nothing bounds what requests that did not complete, or whose tokens were not counted, decoded unseen."
    elif unseen:
        why = f"Every decode step is an event, but for steps of at most {unseen} tokens that no event shows as a step."
    else:
        why = "Every decode step is an event."
    allowed = None if unseen is None else (0.0, float(unseen))
    yield _comparison(Origin.COUNTERS, Origin.STREAM, "decode_steps", decode_steps, steps, allowed, why)
    if not decode_steps or counters.generation_tokens is None or counters.first_tokens is None:
        return
    tokens = steps + accepted
    per_step = tokens / steps
    if unseen is not None:
        # Unseen tokens add most when they took no step of their own, least when each took one.
        allowed = ((tokens + unseen) / (steps + unseen) - per_step, (tokens + unseen) / steps - per_step)
    theirs = (counters.generation_tokens - counters.first_tokens) / decode_steps
    yield _comparison(Origin.COUNTERS, Origin.STREAM, "tokens_per_step", theirs, per_step, allowed, why)


def _blocks_and_stream(pool: RequestPool) -> Iterator[Comparison]:
    """The requests that have both, without oversize events."""
    blocks, events = pool.both_blocks, pool.both_steps
    if not pool.with_both or events.steps is None or events.accepted_tokens is None:
        return
    if blocks.accepted_tokens is not None:
        trimmed = pool.trimmed_tokens
        yield _comparison(
            Origin.PER_REQUEST,
            Origin.STREAM,
            "accepted_tokens",
            blocks.accepted_tokens,
            events.accepted_tokens,
            None if trimmed is None else (0.0, float(trimmed)),
            f"The server counts a step's drafts before the end of the answer cuts them off: over {pool.with_both}"
            f" requests at most {trimmed} tokens, one draft a request among them."
            if trimmed is not None
            else "The server counts a step's drafts before the end of the answer cuts them off; the draft length or"
            " an answer's length is not known.",
        )
    if blocks.steps is not None:
        unseen = pool.both_unseen_tokens
        yield _comparison(
            Origin.PER_REQUEST,
            Origin.STREAM,
            "steps",
            blocks.steps,
            events.steps,
            None if unseen is None else (-float(events.steps), float(unseen)),
            "Steps without a draft are events and in no block; no block has more steps than its answer has events.",
        )


def _comparison(
    left: Origin,
    right: Origin,
    quantity: str,
    left_value: float | None,
    right_value: float | None,
    allowed: tuple[float, float] | None,
    why: str,
) -> Comparison:
    difference = None if left_value is None or right_value is None else left_value - right_value
    agrees = None
    if difference is not None and allowed is not None:
        agrees = allowed[0] <= difference <= allowed[1]
    return Comparison(
        left=left.value,
        right=right.value,
        quantity=quantity,
        left_value=left_value,
        right_value=right_value,
        difference=difference,
        allowed=allowed,
        agrees=agrees,
        why=why,
    )
