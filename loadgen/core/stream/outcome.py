"""One request's plan, its wire facts and its answer to the one record that says how it ended."""

from dataclasses import dataclass

from loadgen.core.record import MESSAGE_LIMIT, Failure, FailureKind, Outcome, RequestRecord, TokenSource
from loadgen.core.redaction import REDACTED
from loadgen.core.request import PlannedRequest
from loadgen.core.stream.answer import Answer

_SHORTEST_PART = 4
"""A secret cut off by the end of a text is removed from this many characters on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What the exchange was on the wire. Instants in ns on the run's axis; other fields as in `RequestRecord`.

    `kind` and `message` are the transport's failure, None when the HTTP message came whole. `retry_after` says that the
    response had a Retry-After. `stalled_stamps` are stamps of reads so late that the kernel may have merged segments.
    """

    sent_ns: int | None = None
    headers_ns: int | None = None
    closed_ns: int | None = None
    http_status: int | None = None
    retry_after: bool = False
    kind: FailureKind | None = None
    message: str | None = None
    resent: bool = False
    connect_ns: int | None = None
    cap_wait_ns: int | None = None
    stamp_lag_ns: int | None = None
    stalled_stamps: tuple[int, ...] = ()
    cancelled: bool = False
    dropped: bool = False


def record_of(
    planned: PlannedRequest, received: Received, answer: Answer | None, *, secrets: tuple[str, ...] = ()
) -> RequestRecord:
    """The record of one finished request. What had arrived is kept, whatever the outcome.

    `answer` is None when no byte of a body came. Each of `secrets` is replaced in the texts that are kept. The output
    token count is the server's, else that of the stream; there is no estimate, since chunks are not tokens.
    """
    outcome, failure = _outcome(received, answer, secrets)
    got = answer or Answer()
    output_tokens, output_tokens_from = got.usage.output_tokens, TokenSource.SERVER
    if output_tokens is None:
        output_tokens, output_tokens_from = got.stream_tokens, TokenSource.STREAM
    events, stalled = got.event_ns, set(received.stalled_stamps)
    return RequestRecord(
        seq=planned.seq,
        request_id=planned.request_id,
        phase=planned.phase,
        session_id=planned.session_id,
        turn=planned.turn_index,
        category=planned.category,
        due_ns=planned.due_ns,
        sent_ns=received.sent_ns,
        headers_ns=received.headers_ns,
        first_ns=events[0] if events else None,
        first_output_ns=None if got.first_output is None else events[got.first_output],
        last_ns=got.last_ns,
        closed_ns=received.closed_ns,
        event_ns=events,
        event_tokens=got.event_tokens,
        input_tokens=got.usage.input_tokens,
        cached_input_tokens=got.usage.cached_input_tokens,
        output_tokens=output_tokens,
        output_tokens_from=None if output_tokens is None else output_tokens_from,
        reasoning_tokens=got.usage.reasoning_tokens,
        planned_input_tokens=planned.turn.input_tokens,
        planned_output_tokens=planned.turn.output_tokens,
        finish_reason=got.finish_reason,
        tool_calls=got.tool_calls,
        outcome=outcome,
        failure=failure,
        speculation=got.speculation,
        text=None if got.text is None else _without(secrets, got.text),
        http_status=received.http_status,
        streamed=None if answer is None else got.streamed,
        cap_wait_ns=received.cap_wait_ns,
        connect_ns=received.connect_ns,
        resent=received.resent,
        stamp_lag_ns=received.stamp_lag_ns,
        stalled_events=sum(stamp in stalled for stamp in events) if stalled else 0,
        notes=tuple(got.notes),
    )


def _outcome(received: Received, answer: Answer | None, secrets: tuple[str, ...]) -> tuple[Outcome, Failure | None]:
    """The first of these that holds: never sent, refused by status, the server's own error, cancelled by us, broken on
    the wire, not readable, broken off, without content, completed."""
    if received.dropped:
        return Outcome.DROPPED, None
    status = received.http_status
    got = answer or Answer()

    def failed(kind: FailureKind, *texts: str | None) -> tuple[Outcome, Failure]:
        message = "; ".join(_without(secrets, text.strip()) for text in texts if text)
        return Outcome.FAILED, Failure(kind=kind, http_status=status, message=message[:MESSAGE_LIMIT] or None)

    if status is not None and not 200 <= status < 300:
        return failed(_refusal(status, received.retry_after), got.error or got.body_start or f"HTTP {status}")
    if got.error is not None:
        return failed(FailureKind.SERVER_ERROR_EVENT, got.error)
    if received.cancelled:
        return Outcome.CANCELLED, None
    if received.kind is not None:
        return failed(received.kind, received.message)
    if status is None:
        return failed(FailureKind.PROTOCOL, "the exchange ended without a response status")
    if got.malformed is not None:
        return failed(FailureKind.PROTOCOL, got.malformed, f"the body begins: {got.body_start}")
    if answer is None or got.body_start == "":
        return failed(FailureKind.EMPTY, "the response had no body")
    if not got.terminal:
        events = len(got.event_ns)
        reason = f"the body ended after {events} token-bearing events, before a finish reason, [DONE] or a final event"
        return failed(FailureKind.TRUNCATED, reason, None if events else f"the body begins: {got.body_start}")
    if got.last_ns is None:
        return failed(FailureKind.EMPTY, f"no content, finish reason {got.finish_reason or 'not given'}")
    return Outcome.COMPLETED, None


def _refusal(status: int, retry_after: bool) -> FailureKind:
    """The kind of a status outside 2xx. A 503 that says when to come back sheds load on purpose, as a 429 does."""
    if status == 429 or (status == 503 and retry_after):
        return FailureKind.RATE_LIMITED
    if 400 <= status < 500:
        return FailureKind.HTTP_4XX
    if 500 <= status < 600:
        return FailureKind.HTTP_5XX
    return FailureKind.PROTOCOL  # a redirect is not followed: it would take the key elsewhere


def _without(secrets: tuple[str, ...], text: str) -> str:
    """`text` with every secret replaced, also one of which the text's end has cut off a part."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
        for length in range(min(len(secret) - 1, len(text)), _SHORTEST_PART - 1, -1):
            if text.endswith(secret[:length]):
                text = text[:-length] + REDACTED
                break
    return text
