"""One outcome for each request, and what its record keeps."""

from dataclasses import replace

import pytest

from loadgen.core.record import Failure, FailureKind, Outcome, RequestSpeculation, TokenSource
from loadgen.core.request import Endpoint, Phase, PlannedRequest, Text, Turn
from loadgen.core.stream.answer import Answer, Note, Usage
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.core.stream.outcome import Received, record_of

PLANNED = PlannedRequest(
    seq=7,
    request_id="r-7",
    phase=Phase.MEASURE,
    due_ns=1000,
    body=b"{}",
    turn=Turn(prompt=Text(text="p"), input_tokens=12, output_tokens=256),
    session_id="s",
    turn_index=2,
    category="chat",
)
WIRE = Received(sent_ns=1100, headers_ns=1500, closed_ns=9000, http_status=200)
WHOLE = Answer(
    event_ns=(2000, 3000, 3000, 4000),
    event_tokens=(1, 2, 3, 1),
    stream_tokens=7,
    first_output=1,
    last_ns=4000,
    usage=Usage(input_tokens=11, cached_input_tokens=3, output_tokens=20, reasoning_tokens=5),
    finish_reason="stop",
    tool_calls=1,
    text="hello",
    speculation=RequestSpeculation(steps=2),
    terminal=True,
    notes=(Note.COUNTS_DISAGREE,),
)


def kind_of(received: Received, answer: Answer | None) -> FailureKind | None:
    failure = record_of(PLANNED, received, answer).failure
    return None if failure is None else failure.kind


def from_stream(*pieces: bytes, content_type: str | None = "text/event-stream") -> Answer:
    decoder = AnswerDecoder(Endpoint.CHAT, keep_text=False, content_type=content_type)
    for piece in pieces:
        decoder.feed(2000, piece)
    return decoder.finish()


def test_a_completed_request_keeps_every_fact() -> None:
    """Plan, wire and answer, each under its own name; lengths are what came, beside what was asked for."""
    received = replace(WIRE, resent=True, connect_ns=5, cap_wait_ns=6, stamp_lag_ns=8, stalled_stamps=(3000, 4000, 777))
    record = record_of(PLANNED, received, WHOLE)
    assert (record.seq, record.request_id, record.phase) == (7, "r-7", Phase.MEASURE)
    assert (record.session_id, record.turn, record.category) == ("s", 2, "chat")
    assert (record.due_ns, record.sent_ns, record.headers_ns, record.closed_ns) == (1000, 1100, 1500, 9000)
    assert (record.first_ns, record.first_output_ns, record.last_ns) == (2000, 3000, 4000)
    assert (record.event_ns, record.event_tokens) == (WHOLE.event_ns, WHOLE.event_tokens)
    assert (record.input_tokens, record.cached_input_tokens, record.planned_input_tokens) == (11, 3, 12)
    assert (record.output_tokens, record.output_tokens_from) == (20, TokenSource.SERVER)
    assert (record.planned_output_tokens, record.reasoning_tokens) == (256, 5)
    assert (record.finish_reason, record.tool_calls, record.text) == ("stop", 1, "hello")
    assert (record.outcome, record.failure, record.http_status, record.streamed) == (Outcome.COMPLETED, None, 200, True)
    assert (record.resent, record.connect_ns, record.cap_wait_ns, record.stamp_lag_ns) == (True, 5, 6, 8)
    assert record.stalled_events == 3, "two events of one late read and one of another"
    assert (record.speculation, record.notes) == (RequestSpeculation(steps=2), ("counts_disagree",))


def test_the_count_is_the_servers_else_the_streams_else_unknown() -> None:
    """Reasoning is inside the server's count, not added to it; events are never taken for tokens."""
    by_stream = record_of(PLANNED, WIRE, replace(WHOLE, usage=Usage()))
    assert (by_stream.output_tokens, by_stream.output_tokens_from) == (7, TokenSource.STREAM)
    unknown = record_of(PLANNED, WIRE, replace(WHOLE, usage=Usage(), event_tokens=None, stream_tokens=None))
    assert (unknown.output_tokens, unknown.output_tokens_from) == (None, None)
    assert unknown.input_tokens is None, "no prompt count is null, not zero"


@pytest.mark.parametrize("status", [200, 201, 202, 206])
def test_any_2xx_is_success(status: int) -> None:
    """201 and 206 with a normal stream are answers."""
    assert record_of(PLANNED, replace(WIRE, http_status=status), WHOLE).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("status", "retry_after", "kind"),
    [
        (400, False, FailureKind.HTTP_4XX),
        (401, True, FailureKind.HTTP_4XX),
        (404, False, FailureKind.HTTP_4XX),
        (429, False, FailureKind.RATE_LIMITED),
        (429, True, FailureKind.RATE_LIMITED),
        (500, True, FailureKind.HTTP_5XX),
        (503, False, FailureKind.HTTP_5XX),
        (503, True, FailureKind.RATE_LIMITED),
        (302, False, FailureKind.PROTOCOL),
        (304, False, FailureKind.PROTOCOL),
        (600, False, FailureKind.PROTOCOL),
    ],
)
def test_the_kind_of_a_status(status: int, retry_after: bool, kind: FailureKind) -> None:
    """A 503 that says when to come back sheds load as a 429 does; a redirect is not followed."""
    assert kind_of(replace(WIRE, http_status=status, retry_after=retry_after), None) is kind


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("application/json", b'{"error":{"message":"The model `x` does not exist."}}', "The model `x` does not exist."),
        ("application/json", b'{"detail":"Not Found"}', "Not Found"),
        ("application/json", b"no json at all", "no json at all"),
        ("text/html", b"<html><h1>502 Bad Gateway</h1></html>", "<html><h1>502 Bad Gateway</h1></html>"),
        ("text/plain", b"\n upstream connect error \n", "upstream connect error"),
        (None, b"", "HTTP 502"),
    ],
)
def test_a_refusal_has_its_status_and_the_servers_words(content_type: str | None, body: bytes, message: str) -> None:
    """The status decides before the body is understood; a body that is no JSON is quoted."""
    record = record_of(PLANNED, replace(WIRE, http_status=502), from_stream(body, content_type=content_type))
    assert record.failure == Failure(kind=FailureKind.HTTP_5XX, http_status=502, message=message)
    assert (record.first_ns, record.last_ns, record.output_tokens) == (None, None, None)


def test_a_refusal_by_a_whole_answer_is_a_refusal() -> None:
    """Not even a good stream makes a success of a 500."""
    assert kind_of(replace(WIRE, http_status=500), WHOLE) is FailureKind.HTTP_5XX


def test_a_server_error_event_beats_what_the_wire_did_afterwards() -> None:
    """The server said why before the connection went; so also when we had cancelled by then."""
    broken = replace(WHOLE, error="engine stopped")
    for received in (WIRE, replace(WIRE, kind=FailureKind.READ, message="reset"), replace(WIRE, cancelled=True)):
        record = record_of(PLANNED, received, broken)
        assert record.failure == Failure(kind=FailureKind.SERVER_ERROR_EVENT, http_status=200, message="engine stopped")
        assert record.event_ns == WHOLE.event_ns, "what was streamed before is kept"


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_failure_on_the_wire_is_the_kind_and_keeps_what_came(kind: FailureKind) -> None:
    """A reset, a timeout or a cut frame fails the request even when the answer looks whole."""
    record = record_of(PLANNED, replace(WIRE, kind=kind, message="why"), WHOLE)
    assert record.failure == Failure(kind=kind, http_status=200, message="why")
    assert (record.event_ns, record.output_tokens, record.text) == (WHOLE.event_ns, 20, "hello")


def test_a_failure_before_any_response() -> None:
    """No connection: no status, no instants but our own."""
    received = Received(sent_ns=1100, closed_ns=1200, kind=FailureKind.CONNECT, message="refused")
    record = record_of(PLANNED, received, None)
    assert record.failure == Failure(kind=FailureKind.CONNECT, message="refused")
    assert (record.streamed, record.event_ns, record.last_ns, record.http_status) == (None, (), None, None)


def test_cancelled_and_dropped_are_no_failures() -> None:
    """A request ended by us keeps its partial answer; one never sent has nothing."""
    cancelled = record_of(PLANNED, replace(WIRE, cancelled=True), replace(WHOLE, terminal=False))
    assert (cancelled.outcome, cancelled.failure, cancelled.event_ns) == (Outcome.CANCELLED, None, WHOLE.event_ns)
    dropped = record_of(PLANNED, Received(dropped=True, cap_wait_ns=5), None)
    assert (dropped.outcome, dropped.failure, dropped.sent_ns) == (Outcome.DROPPED, None, None)
    assert (dropped.due_ns, dropped.cap_wait_ns, dropped.planned_output_tokens) == (1000, 5, 256)


def test_truncated() -> None:
    """Tokens and then a clean end of the body without any terminal mark: not a success, tokens kept."""
    answer = from_stream(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n' * 6)
    record = record_of(PLANNED, WIRE, answer)
    assert record.failure is not None
    assert record.failure.kind is FailureKind.TRUNCATED
    assert "after 6 token-bearing events" in (record.failure.message or "")
    assert len(record.event_ns) == 6


def test_a_stream_that_is_none_is_shown() -> None:
    """A bare error text under the content type of a stream is quoted: nothing else says what happened."""
    record = record_of(PLANNED, WIRE, from_stream(b'{"error":{"message":"overloaded"}}'))
    assert record.failure is not None
    assert record.failure.kind is FailureKind.TRUNCATED
    assert (record.failure.message or "").endswith('the body begins: {"error":{"message":"overloaded"}}')


@pytest.mark.parametrize("tokens", [0, 1])
def test_empty(tokens: int) -> None:
    """A role, a stop and usage: its own kind, no first token, whatever the count says."""
    stream = (
        b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
        b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
        b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":%d}}\n\ndata: [DONE]\n\n' % tokens
    )
    record = record_of(PLANNED, WIRE, from_stream(stream))
    assert record.failure == Failure(kind=FailureKind.EMPTY, http_status=200, message="no content, finish reason stop")
    assert (record.first_ns, record.last_ns, record.output_tokens) == (None, None, tokens)


@pytest.mark.parametrize("answer", [None, from_stream(), from_stream(b"", content_type=None)])
def test_a_body_of_no_bytes_is_empty(answer: Answer | None) -> None:
    """Nothing was cut off when nothing was sent."""
    assert kind_of(WIRE, answer) is FailureKind.EMPTY


@pytest.mark.parametrize(
    ("content_type", "body"),
    [("text/html", b"<html>"), ("application/json", b"{"), ("text/event-stream", b"data: {\n\n")],
)
def test_protocol(content_type: str, body: bytes) -> None:
    """A 200 whose body is not what it claims to be says so, and shows the beginning."""
    record = record_of(PLANNED, WIRE, from_stream(body, content_type=content_type))
    assert record.failure is not None
    assert record.failure.kind is FailureKind.PROTOCOL
    assert "expected" in (record.failure.message or "")
    assert (record.failure.message or "").endswith(f"the body begins: {body.decode().strip()}")


def test_an_exchange_without_a_status_is_never_a_success() -> None:
    """No status and no failure of the wire: there was no response."""
    assert kind_of(Received(sent_ns=1), WHOLE) is FailureKind.PROTOCOL


def test_a_plain_answer_completes_without_streaming_instants() -> None:
    """The end of the last content is there, a first token is not: nothing makes a TTFT of it."""
    body = b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}'
    record = record_of(PLANNED, WIRE, from_stream(body, content_type="application/json"))
    assert (record.outcome, record.streamed) == (Outcome.COMPLETED, False)
    assert (record.first_ns, record.first_output_ns, record.event_ns, record.last_ns) == (None, None, (), 2000)


SECRET = "sk-0123456789abcdef"


@pytest.mark.parametrize("where", ["error", "malformed", "body_start", "wire"])
def test_secrets_are_replaced_in_every_message(where: str) -> None:
    """A server that echoes the key does not get it into a record."""
    answers = {
        "error": replace(WHOLE, error=f"bad key {SECRET}!"),
        "malformed": Answer(malformed=f"expected a JSON object: {SECRET}", body_start="x"),
        "body_start": Answer(malformed="expected a stream", body_start=f"key {SECRET} is wrong"),
    }
    received = replace(WIRE, kind=FailureKind.TLS, message=f"to {SECRET}@host") if where == "wire" else WIRE
    record = record_of(PLANNED, received, answers.get(where, WHOLE), secrets=("", SECRET))
    message = record.failure.message if record.failure else ""
    assert "[secret]" in (message or "")
    assert SECRET[3:8] not in (message or "")


@pytest.mark.parametrize("kept", range(4, len(SECRET)))
def test_a_secret_cut_off_by_our_own_limit_is_replaced_too(kept: int) -> None:
    """The beginning of a body may end within the key."""
    start = "x" * 20 + SECRET[:kept]
    answer = Answer(malformed=f"expected a JSON object: {start}", body_start=start)
    record = record_of(PLANNED, WIRE, answer, secrets=(SECRET,))
    assert record.failure is not None
    assert "sk-0" not in (record.failure.message or "")


def test_messages_are_cut_after_secrets_are_replaced() -> None:
    """At most 500 characters, and no part of a key at the cut."""
    answer = replace(WHOLE, error="x" * 490 + SECRET + "y" * 500)
    failure = record_of(PLANNED, WIRE, answer, secrets=(SECRET,)).failure
    assert failure is not None
    assert failure.message == "x" * 490 + "[secret]yy"


def test_secrets_are_replaced_in_kept_text() -> None:
    """A model that repeats the key does not get it into the saved text."""
    assert record_of(PLANNED, WIRE, replace(WHOLE, text=f"the key is {SECRET}."), secrets=(SECRET,)).text == (
        "the key is [secret]."
    )
