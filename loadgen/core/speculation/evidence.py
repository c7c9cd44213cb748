"""What one request tells of its steps: the server's block, the tokens of each event, and what neither shows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loadgen.core.metrics.per_request import output_tokens
from loadgen.core.record import FailureKind, Outcome, RequestRecord, RequestSpeculation
from loadgen.core.speculation.acceptance import Acceptance, from_block, from_step_tokens

LARGEST_DRAFT_TOKENS = 64
"""Where the draft length is not known, an event of more tokens than such a draft and the step's own is not a step."""

_NOT_TAKEN_IN = frozenset(
    {
        *(FailureKind.CONNECT, FailureKind.CONNECT_TIMEOUT, FailureKind.TLS, FailureKind.CLIENT_RESOURCE),
        *(FailureKind.HTTP_4XX, FailureKind.RATE_LIMITED),
    }
)
"""Failures after which the server generated nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One request's own account of its decode steps; the first token comes from processing the prompt and is no step.

    `block` is the server's account of the steps that had a draft, None without one or when it `contradicts` itself.
    `steps` are the decode steps, drafted or not, that the events show: `step_tokens` the tokens of each, `starts` the
    output position (from 1) at which it began. Events too large for a step (`oversize_events`) are left out. All three
    are None when the tokens of the events are not known. `decode_tokens` are at most the tokens that the server
    generated after the first, `unseen_tokens` at most those of them that no counted event after the first shows; None
    when nothing bounds them. `broke_off` is of a request that did not complete and may have been decoding.
    """

    block: Acceptance | None
    contradicts: bool
    draft_tokens: int | None
    steps: Acceptance | None
    step_tokens: NDArray[np.int64] | None
    starts: NDArray[np.int64] | None
    oversize_events: int
    decode_tokens: int | None
    unseen_tokens: int | None
    broke_off: bool


def evidence_of(
    record: RequestRecord, *, draft_tokens: int | None = None, max_output_tokens: int | None = None
) -> Evidence:
    """A record of any outcome. `draft_tokens` is what the server is set to where its block does not say.

    `max_output_tokens` is the run's own bound on answers.
    """
    told = record.speculation
    block = None if told is None or told == RequestSpeculation() else from_block(told)
    if told is not None and told.max_draft_tokens is not None:
        draft_tokens = told.max_draft_tokens
    sizes, starts, oversize = None, None, 0
    events = np.array(record.event_tokens or (), dtype=np.int64)
    if len(events) and events.min() > 0:
        is_step = events <= 1 + (LARGEST_DRAFT_TOKENS if draft_tokens is None else draft_tokens)
        oversize = len(events) - int(np.count_nonzero(is_step))
        is_step = is_step[1:]
        sizes, starts = events[1:][is_step], (np.cumsum(events)[:-1] + 1)[is_step]
    steps = None if sizes is None else from_step_tokens(sizes)
    decoded = _decode_tokens(record, max_output_tokens)
    seen = 0 if sizes is None else int(sizes.sum())
    return Evidence(
        block=block,
        contradicts=block is None and told is not None and told != RequestSpeculation(),
        draft_tokens=draft_tokens,
        steps=steps,
        step_tokens=sizes,
        starts=starts,
        oversize_events=oversize,
        decode_tokens=decoded,
        unseen_tokens=None if decoded is None else max(0, decoded - seen),
        broke_off=record.outcome is not Outcome.COMPLETED and decoded != 0,
    )


def _decode_tokens(record: RequestRecord, max_output_tokens: int | None) -> int | None:
    """Of an answer that was completed its own count; of another one, what was asked for."""
    if record.sent_ns is None or (record.failure is not None and record.failure.kind in _NOT_TAKEN_IN):
        return 0
    if record.outcome is Outcome.COMPLETED:
        generated = output_tokens(record)
    else:
        asked = [tokens for tokens in (record.planned_output_tokens, max_output_tokens) if tokens is not None]
        generated = min(asked, default=None)
    return None if generated is None else max(0, generated - 1)
