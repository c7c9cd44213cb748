"""Bodies that are one JSON object or nothing of the kind: decided by content type, never by hope."""

import json

import pytest

from loadgen.core.request import Endpoint
from loadgen.core.stream.answer import Note, Usage

CHAT = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
}
JSON = "application/json; charset=utf-8"


def body(value: object) -> bytes:
    return json.dumps(value).encode()


def test_a_json_answer_has_no_streaming_instants(decode) -> None:
    """A server that ignored `stream` gives no events; the content arrived with the body's last byte."""
    data = body(CHAT)
    answer = decode(data[:40], data[40:80], data[80:], b"", content_type=JSON)
    assert not answer.streamed
    assert (answer.event_ns, answer.event_tokens, answer.first_output) == ((), None, None)
    assert answer.last_ns == 30
    assert (answer.text, answer.finish_reason, answer.terminal) == ("Hello.", "stop", True)
    assert answer.usage == Usage(input_tokens=9, output_tokens=2)
    assert answer.assistant_message == {"role": "assistant", "content": "Hello."}
    assert (answer.notes, answer.body_start) == ((), None)


def test_completions_reasoning_and_calls_in_a_plain_body(decode) -> None:
    """All channels are read from whole messages too."""
    plain = {"choices": [{"index": 0, "text": "abc", "finish_reason": "length"}]}
    assert decode(body(plain), endpoint=Endpoint.COMPLETIONS, content_type=JSON).text == "abc"
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": None, "reasoning_content": "hm", "tool_calls": [call]}
    choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
    counts = {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 3}}
    answer = decode(body({"choices": choices, "usage": counts}), content_type=JSON)
    assert (answer.tool_calls, answer.text, answer.last_ns) == (1, "hm", 10)
    assert Note.HIDDEN_REASONING not in answer.notes


def test_a_plain_body_without_content_has_no_arrival_of_any(decode) -> None:
    """An answer that stopped at once holds nothing: no last content."""
    choices = [{"index": 0, "message": {"content": ""}, "finish_reason": "stop"}]
    answer = decode(body({"choices": choices, "usage": {"completion_tokens": 1}}), content_type=JSON)
    assert (answer.last_ns, answer.terminal, answer.usage.output_tokens) == (None, True, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"error": {"message": "no such model", "code": 404}}, "no such model"),
        ({"error": "no such model"}, "no such model"),
        ({"object": "error", "message": "no such model", "code": 400}, "no such model"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "field required"),
        ({"message": "forbidden"}, "forbidden"),
        ({**CHAT, "error": {"message": "half of it"}}, "half of it"),
    ],
)
@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.RESPONSES])
def test_errors_in_a_plain_body(decode, value: dict, text: str, endpoint: Endpoint) -> None:
    """An error in a body of status 200 is an error, in every form in which servers write one."""
    answer = decode(body(value), endpoint=endpoint, content_type=JSON)
    assert text in (answer.error or "")
    assert answer.malformed is None


@pytest.mark.parametrize("data", [b"{}", b'{"id": 1}', b"[]", b"null", b'{"choices":[', b"", b"oops"])
@pytest.mark.parametrize("endpoint", [Endpoint.CHAT, Endpoint.RESPONSES])
def test_json_that_is_no_answer_is_malformed(decode, data: bytes, endpoint: Endpoint) -> None:
    """Cut off, of another kind, or empty: the reason is given, and no content is claimed."""
    answer = decode(data, endpoint=endpoint, content_type=JSON)
    assert answer.malformed is not None
    assert answer.malformed.startswith("expected a JSON object")
    assert (answer.last_ns, answer.terminal) == (None, False)


@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/octet-stream"])
def test_other_bodies_are_malformed_and_shown(decode, kind: str) -> None:
    """A proxy's page is named by its type, and its beginning is kept."""
    page = b"<html><h1>502 Bad Gateway</h1>" + b"x" * 10_000
    answer = decode(page[:10], page[10:], content_type=kind)
    assert answer.malformed == f"expected text/event-stream or application/json, got {kind}"
    assert answer.body_start is not None
    assert answer.body_start.startswith("<html><h1>502 Bad Gateway")
    assert len(answer.body_start) == 2048


@pytest.mark.parametrize("lead", [b"", b"\r\n", b"  \n"])
def test_without_a_content_type_the_first_character_decides(decode, chunk, lead: bytes) -> None:
    """An object, markup or a stream, also when the first reads hold only white space."""
    data = body(CHAT)
    pieces = [lead, data[:1], data[1:]]
    assert decode(*pieces, content_type=None).streamed is False
    assert decode(*pieces, content_type=None).text == "Hello."
    assert "markup" in (decode(lead, b"<html>", content_type=None).malformed or "")
    streamed = decode(lead, chunk(content="a"), chunk("stop"), content_type=None)
    assert (streamed.streamed, streamed.event_ns) == (True, (20,))


def test_a_plain_body_over_the_cap(decode) -> None:
    """The cap holds for a plain body as for an event."""
    answer = decode(body(CHAT), content_type=JSON, max_event_bytes=50)
    assert answer.malformed == "the body is longer than the limit of 50 bytes"


def test_no_body_at_all(decode) -> None:
    """Nothing came: nothing is claimed."""
    answer = decode()
    assert (answer.terminal, answer.last_ns, answer.body_start, answer.malformed) == (False, None, "", None)
