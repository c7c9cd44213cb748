"""Streams and bodies of `/v1/responses`."""

import json

import pytest

from loadgen.core.request import Endpoint
from loadgen.core.stream.answer import Answer, Usage


def named(*payloads: dict, names: bool = True) -> bytes:
    lines = [f"event: {p['type']}\n" * names + f"data: {json.dumps(p)}\n\n" for p in payloads]
    return "".join(lines).encode()


def text(delta: str, **more: object) -> dict:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": delta, **more}


def end(status: str = "completed", kind: str | None = None, **response: object) -> dict:
    return {"type": kind or f"response.{status}", "response": {"status": status, **response}}


@pytest.fixture
def answer_to(decode):
    def run(*payloads: dict, names: bool = True) -> Answer:
        return decode(*(named(payload, names=names) for payload in payloads), endpoint=Endpoint.RESPONSES)

    return run


@pytest.mark.parametrize("names", [True, False])
def test_deltas_bear_tokens_and_done_events_do_not(answer_to, names: bool) -> None:
    """Text counts where it is new, not where it is repeated; the type may stand in the data alone."""
    usage = {
        "input_tokens": 40,
        "input_tokens_details": {"cached_tokens": 32},
        "output_tokens": 25,
        "output_tokens_details": {"reasoning_tokens": 9},
    }
    answer = answer_to(
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "hm"},
        {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}},
        text("Hello"),
        text(""),
        text(" you"),
        {"type": "response.output_text.done", "text": "Hello you"},
        end(usage=usage, output=[{"type": "message", "content": [{"type": "output_text", "text": "Hello you"}]}]),
        names=names,
    )
    assert answer.event_ns == (20, 40, 60)
    assert (answer.first_output, answer.last_ns, answer.text) == (1, 60, "hmHello you")
    assert answer.usage == Usage(input_tokens=40, cached_input_tokens=32, output_tokens=25, reasoning_tokens=9)
    assert (answer.finish_reason, answer.terminal, answer.notes) == ("stop", True, ())


@pytest.mark.parametrize("kind", ["response.incomplete", "response.completed"])
def test_a_length_limited_answer_is_a_success(answer_to, kind: str) -> None:
    """`max_output_tokens` reached is finish reason length, in whichever final event the server says it."""
    answer = answer_to(text("x"), end("incomplete", kind, incomplete_details={"reason": "max_output_tokens"}))
    assert (answer.finish_reason, answer.error, answer.terminal) == ("length", None, True)
    filtered = answer_to(text("x"), end("incomplete", incomplete_details={"reason": "content_filter"}))
    assert (filtered.finish_reason, filtered.error) == ("content_filter", None)


@pytest.mark.parametrize(
    "event",
    [
        end("failed", error={"code": "server_error", "message": "went away"}),
        {"type": "error", "code": "server_error", "message": "went away", "param": None},
        {"type": "error", "error": {"message": "went away"}},
        {"type": "response.completed", "response": {"status": "failed", "error": {"message": "went away"}}},
    ],
)
def test_failures_in_a_stream(answer_to, event: dict) -> None:
    """Each form of failure is an error with the server's text; what came before is kept."""
    answer = answer_to(text("x"), event)
    assert answer.error == "went away"
    assert answer.event_ns == (10,)


def test_a_failure_that_says_nothing_is_one_all_the_same(answer_to, decode) -> None:
    """Status failed without an error, a cancelled response, an error event of bare text."""
    assert answer_to(end("failed", error=None)).error == "the response failed"
    assert "cancelled" in (answer_to(end("cancelled", error=None)).error or "")
    assert decode(b"event: error\ndata: gone\n\n", endpoint=Endpoint.RESPONSES).error == "gone"


def test_a_stream_without_its_final_event_is_not_terminal(answer_to) -> None:
    """Text and a clean end of the body are no end."""
    assert not answer_to(text("x"), {"type": "response.output_text.done", "text": "x"}).terminal


def test_calls_are_content(answer_to) -> None:
    """A function's name and its arguments bear tokens; calls are counted by output item."""
    added = {"type": "function_call", "id": "fc", "call_id": "call_1", "name": "add", "arguments": ""}
    answer = answer_to(
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":'},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "1}"},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}},
        end(),
    )
    assert (answer.event_ns, answer.tool_calls, answer.finish_reason) == ((10, 20, 30), 1, "tool_calls")
    assert answer.assistant_message == {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}],
    }


def test_logprobs_count_tokens(answer_to) -> None:
    """Entries of a delta are its tokens; the empty list that servers send unasked is no count."""
    known = answer_to(text("a b", logprobs=[{}, {}]), text("c", logprobs=[{}]), end())
    assert known.event_tokens == (2, 1)
    assert answer_to(text("a b", logprobs=[]), end()).event_tokens is None


def test_text_that_comes_only_with_the_end_has_no_event(answer_to) -> None:
    """A server that sends no deltas gives an arrival of the whole and no streaming instants."""
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm "}]},
        {"type": "message", "content": [{"type": "output_text", "text": "all"}]},
    ]
    answer = answer_to({"type": "response.in_progress", "response": {"status": "in_progress"}}, end(output=output))
    assert (answer.event_ns, answer.last_ns, answer.text) == ((), 20, "hm all")
    assert answer.assistant_message == {"role": "assistant", "content": "all"}


def test_a_plain_response(decode) -> None:
    """`stream: false`: text, calls, usage and end from one object."""
    value = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "So"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4},
    }
    data = json.dumps(value).encode()
    answer = decode(data[:9], data[9:], endpoint=Endpoint.RESPONSES, content_type="application/json")
    assert (answer.streamed, answer.last_ns, answer.event_ns) == (False, 20, ())
    assert (answer.text, answer.tool_calls, answer.finish_reason) == ("So", 1, "length")
    assert answer.usage == Usage(input_tokens=3, output_tokens=4)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_response_that_still_runs_is_not_terminal(decode, status: str) -> None:
    """A background response is no answer yet."""
    data = json.dumps({"status": status, "output": []}).encode()
    assert not decode(data, endpoint=Endpoint.RESPONSES, content_type="application/json").terminal


def test_odd_events_do_not_fail_the_stream(answer_to) -> None:
    """An unknown event, a delta of another type, a null response: skipped."""
    answer = answer_to(
        {"type": "response.audio.delta", "delta": {"bytes": 1}},
        {"type": "response.something.new", "response": None, "value": 3},
        text("a"),
        end(usage=None),
    )
    assert (answer.text, answer.malformed, answer.terminal) == ("a", None, True)
