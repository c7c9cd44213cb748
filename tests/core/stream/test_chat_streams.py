"""Chat and completions streams: what bears tokens, what ends a stream, what odd data comes to."""

import gc
import json
import weakref

import pytest

from loadgen.core.request import Endpoint
from loadgen.core.stream.answer import Note
from loadgen.core.stream.openai import AnswerDecoder
from tests.core.stream.chat import DONE, usage

# Stamps


def test_an_event_has_the_stamp_of_the_read_that_completes_it(decode, chunk) -> None:
    """A delta in three reads is one event with the last one's stamp, and never a JSON error."""
    event = chunk(content="Hello")
    answer = decode(event[:30], event[30:-1], event[-1:] + chunk(content="x")[:20], chunk(content="x")[20:])
    assert answer.event_ns == (30, 40)
    assert answer.malformed is None


def test_events_of_one_read_share_its_stamp(decode, chunk) -> None:
    """Six events in one write are six events with a gap of zero."""
    answer = decode(b"".join(chunk(content=str(i)) for i in range(6)), chunk("stop") + DONE)
    assert answer.event_ns == (10,) * 6
    assert answer.text == "012345"


def test_a_role_prelude_a_comment_and_empty_deltas_are_no_tokens(decode, chunk) -> None:
    """The first token is the first text, not the role, a keep-alive, a null or an empty delta."""
    prelude = [chunk(role="assistant", content=""), b": keep-alive\n\n", b"data:\n\n", chunk(content=None), chunk()]
    answer = decode(*prelude, chunk(content="a"), chunk("stop", content=""), usage(completion_tokens=1), DONE)
    assert answer.event_ns == (60,)
    assert answer.last_ns == 60, "neither the usage chunk nor [DONE] moves the last token"


def test_one_event_then_usage_keeps_the_content_stamp(decode, chunk) -> None:
    """A single-chunk answer has its stamp from the content, not from usage."""
    answer = decode(chunk(content="whole answer"), chunk("stop"), usage(completion_tokens=3), DONE)
    assert answer.event_ns == (10,)
    assert answer.usage.output_tokens == 3


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_a_token_and_not_output(decode, chunk, key: str) -> None:
    """Both names of the reasoning channel start TTFT; the first output is the first event outside it."""
    answer = decode(chunk(**{key: "hm"}), chunk(**{key: " well"}), chunk(content="yes"), chunk("stop"), DONE)
    assert answer.event_ns == (10, 20, 30)
    assert answer.first_output == 2
    assert answer.text == "hm wellyes"
    assert answer.assistant_message == {"role": "assistant", "content": "yes"}


def test_an_answer_cut_inside_reasoning_has_no_first_output(decode, chunk) -> None:
    """Fourteen reasoning events and a stop by length: tokens, no output."""
    answer = decode(*[chunk(reasoning="r")] * 14, chunk("length"), DONE)
    assert len(answer.event_ns) == 14
    assert answer.first_output is None
    assert answer.finish_reason == "length"


def test_a_refusal_is_content(decode, chunk) -> None:
    """A refusal is an answer."""
    answer = decode(chunk(refusal="I will not."), chunk("stop"), DONE)
    assert (answer.event_ns, answer.first_output, answer.text) == ((10,), 0, "I will not.")


def test_tool_call_fragments_are_content_and_calls_are_counted_by_index(decode, chunk) -> None:
    """Four fragments are four events of two calls; an answer of calls alone has a first token."""
    fragments = [
        {"index": 0, "id": "a", "type": "function", "function": {"name": "add", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"x":'}},
        {"index": 0, "function": {"arguments": "1}"}},
        {"index": 1, "id": "b", "function": {"name": "now", "arguments": "{}"}},
    ]
    events = [chunk(tool_calls=[fragment]) for fragment in fragments]
    answer = decode(*events, chunk(tool_calls=[{"index": 1, "function": {"arguments": ""}}]), chunk("tool_calls"), DONE)
    assert answer.event_ns == (10, 20, 30, 40), "an empty fragment is none"
    assert (answer.tool_calls, answer.first_output) == (2, 0)
    assert answer.assistant_message == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}},
            {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
        ],
    }


def test_calls_without_an_index_are_told_apart_by_id(decode, chunk) -> None:
    """Some servers leave the index out; the old `function_call` is one call."""
    calls = [
        {"id": "a", "function": {"name": "f"}},
        {"function": {"arguments": "{}"}},
        {"id": "b", "function": {"name": "g"}},
    ]
    assert decode(*[chunk(tool_calls=[call]) for call in calls], chunk("tool_calls")).tool_calls == 2
    old = decode(chunk(function_call={"name": "f"}), chunk(function_call={"arguments": "{}"}), chunk("function_call"))
    assert (old.tool_calls, len(old.event_ns)) == (1, 2)


def test_arguments_may_come_as_an_object(decode, chunk) -> None:
    """Arguments that are not a text yet become one."""
    answer = decode(chunk(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}]), chunk("stop"))
    calls = answer.assistant_message["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"a": 1}']
    assert Note.ODD_FIELDS not in answer.notes


def test_text_is_kept_only_when_asked_for(decode, chunk) -> None:
    """Without `keep_text` everything but the text is the same."""
    stream = [chunk(content="a"), chunk(tool_calls=[{"index": 0, "function": {"name": "f"}}]), chunk("stop"), DONE]
    kept, bare = decode(*stream), decode(*stream, keep_text=False)
    assert (bare.text, bare.assistant_message) == (None, None)
    assert (bare.event_ns, bare.tool_calls, bare.finish_reason) == (kept.event_ns, kept.tool_calls, kept.finish_reason)


def test_events_are_counted_while_the_stream_runs(chunk) -> None:
    """Events of the bytes fed so far, however many tokens they hold."""
    decoder = AnswerDecoder(Endpoint.CHAT, keep_text=False)
    decoder.feed(1, chunk(content="x", choice={"token_ids": [1, 2, 3]}) * 2)
    assert decoder.events == 2
    decoder.feed(2, chunk(content="x"))
    assert decoder.events == 3


def test_a_decoder_is_freed_without_a_garbage_collection(chunk) -> None:
    """Thousands of decoders come and go while the collector is off: none refers to itself."""
    for data, endpoint in ((chunk(content="x"), Endpoint.CHAT), (b"{}", Endpoint.RESPONSES), (b"<", Endpoint.CHAT)):
        decoder = AnswerDecoder(endpoint, keep_text=True)
        alive = weakref.ref(decoder)
        decoder.feed(1, data)
        decoder.finish()
        gc.disable()
        try:
            del decoder
            assert alive() is None
        finally:
            gc.enable()


# How it ends


def test_a_stream_without_any_end_is_not_terminal(decode, chunk) -> None:
    """Six tokens and a clean end of the body: the answer is not whole, and what came is kept."""
    answer = decode(*[chunk(content="x")] * 6)
    assert not answer.terminal
    assert len(answer.event_ns) == 6
    assert answer.body_start is not None


def test_a_finish_reason_or_done_is_an_end(decode, chunk) -> None:
    """Either alone ends an answer, with a note on the other."""
    assert decode(chunk(content="x"), chunk("stop")).notes == (Note.NO_DONE, Note.USAGE_MISSING)
    answer = decode(chunk(content="x"), DONE)
    assert answer.terminal
    assert Note.NO_FINISH_REASON in answer.notes


@pytest.mark.parametrize("form", [b"data:[DONE]\n\n", b"data: [DONE]\r\n\r\n", b"data: [DONE]\r\r"])
def test_done_in_every_form_ends_reading(decode, chunk, form: bytes) -> None:
    """What follows [DONE], in the same read or later, has no say."""
    late = chunk(content="late") + b"data: {broken\n\n"
    answer = decode(chunk(content="x", finish="stop") + form + late, late)
    assert (answer.text, answer.malformed, answer.terminal) == ("x", None, True)


def test_an_unterminated_last_event_is_discarded(decode, chunk) -> None:
    """An end without the empty line is half an event: never taken for a whole one."""
    answer = decode(chunk(content="x"), chunk("stop").removesuffix(b"\n"))
    assert not answer.terminal
    assert Note.UNTERMINATED_EVENT in answer.notes


@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls", "eos"])
def test_finish_reasons_are_kept(decode, chunk, reason: str) -> None:
    """Whatever ended a whole answer is kept as the server named it."""
    answer = decode(chunk(content="x"), chunk(reason), DONE)
    assert (answer.finish_reason, answer.error) == (reason, None)


def test_a_length_over_the_limit_is_malformed(decode, chunk) -> None:
    """An event over our own cap is named as such, with the limit."""
    answer = decode(chunk(content="x"), chunk(content="y" * 5000), max_event_bytes=1000)
    assert answer.malformed == "an event is longer than the limit of 1000 bytes"
    assert answer.event_ns == (10,)


def test_a_delta_of_two_megabytes(decode, chunk) -> None:
    """A long delta is one event, whatever reads it comes in."""
    event = chunk(content="y" * 2_000_000)
    answer = decode(*(event[i : i + 65536] for i in range(0, len(event), 65536)), chunk("stop"), DONE)
    assert len(answer.event_ns) == 1
    assert len(answer.text) == 2_000_000


# Odd data


def test_explicit_nulls_are_absent(decode) -> None:
    """A null anywhere is a missing field."""
    body = {
        "choices": [
            {
                "index": None,
                "delta": {"role": None, "content": "a", "function_call": None, "audio": None, "tool_calls": None},
                "logprobs": None,
                "finish_reason": None,
                "token_ids": None,
            }
        ],
        "usage": None,
        "error": None,
        "metrics": None,
        "timings": None,
        "sglext": None,
        "prompt_token_ids": None,
    }
    null = (
        b'data: {"choices":null,"usage":{"prompt_tokens":31,"completion_tokens":null,"prompt_tokens_details":null}}\n\n'
    )
    answer = decode(f"data: {json.dumps(body)}\n\n".encode(), null, b'data: {"choices":[{"delta":null}]}\n\n', DONE)
    assert (answer.text, answer.usage.input_tokens, answer.error, answer.malformed) == ("a", 31, None, None)
    assert Note.ODD_FIELDS not in answer.notes


@pytest.mark.parametrize(
    "event",
    [
        b'{"choices":[{"index":"0","delta":{"content":"a"}}]}',
        b'{"choices":[{"delta":{"content":"a","reasoning":7}}]}',
        b'{"choices":[{"delta":{"content":"a"},"finish_reason":{"type":"stop"}}],"usage":[1]}',
        b'{"choices":[7,{"delta":{"content":"a"}}],"timings":"fast"}',
        b'{"choices":[{"delta":{"content":"a","tool_calls":{"index":0}}}],"metrics":[]}',
        b'{"choices":[{"delta":{"content":"a"},"logprobs":{"content":5}}]}',
    ],
)
def test_a_field_of_another_type_is_left_out(decode, event: bytes) -> None:
    """An undocumented type loses that field only, and a note says so."""
    answer = decode(b"data: " + event + b"\n\n", DONE)
    assert (answer.text, answer.malformed) == ("a", None)
    assert Note.ODD_FIELDS in answer.notes


def test_logprobs_are_counted_on_the_lenient_path_too(decode) -> None:
    """Entries are counted, not read, also beside a field of another type and beside a NaN."""
    odd = b'data: {"choices":[{"index":"0","delta":{"content":"a"},"logprobs":{"content":[{"logprob":-1},{}]}}]}\n\n'
    nan = b'data: {"choices":[{"delta":{"content":"b"},"logprobs":{"content":[{"logprob":NaN}]}}]}\n\n'
    assert decode(odd, nan, DONE).event_tokens == (2, 1)


def test_content_parts_are_joined(decode, chunk) -> None:
    """Content may come as a list of parts."""
    assert decode(chunk(content=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), DONE).text == "ab"


@pytest.mark.parametrize(
    ("raw", "text"),
    [(b"a\xff", "a\ufffd"), (b"a\\ud83d", "a\ufffd"), (b"\\ude00a", "\ufffda"), (b"\\ud83d\\ude00", "😀")],
)
def test_text_that_is_no_unicode_is_repaired(decode, raw: bytes, text: str) -> None:
    """A byte or a surrogate that stands alone becomes U+FFFD, and the text can be stored; a pair is a character."""
    answer = decode(b'data: {"choices":[{"delta":{"content":"' + raw + b'"}}]}\n\n', DONE)
    assert answer.text == text
    assert answer.text.encode()
    assert (Note.REPAIRED_TEXT in answer.notes) == ("\ufffd" in text)


@pytest.mark.parametrize("event", [b"{", b"hello", b"[1, 2]", b'"text"', b"5", b"[" * 100_000, b"1" * 5000])
def test_what_is_no_json_object_is_malformed(decode, chunk, event: bytes) -> None:
    """The reason names what was expected and shows how the event begins; what else came is kept."""
    answer = decode(chunk(content="a"), b"data: " + event + b"\n\n", chunk(content="b"), chunk("stop"), DONE)
    assert answer.malformed is not None
    assert answer.malformed.startswith("expected a JSON object")
    assert event[:20].decode() in answer.malformed
    assert len(answer.malformed) < 400
    assert answer.event_ns == (10, 30)


def test_foreign_events_are_nobodys_fault(decode, chunk) -> None:
    """A heartbeat's data need not be JSON, nor an empty data field."""
    heartbeats = b"event: ping\ndata: alive\n\ndata:\n\ndata:   \n\nevent: ping\ndata: {}\n\ndata: null\n\n"
    answer = decode(heartbeats, chunk(content="a"), chunk("stop"), DONE)
    assert (answer.malformed, answer.event_ns) == (None, (20,))


# Errors


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (b'data: {"error":{"message":"engine stopped","code":503}}\n\n', "engine stopped"),
        (b'data: {"error":"out of memory"}\n\n', "out of memory"),
        (b'data: {"error":{"code":503}}\n\n', '{"code": 503}'),
        (b'data: {"error":["a"]}\n\n', '["a"]'),
        (b'data: {"object":"error","message":"too long","code":400}\n\n', "too long"),
        (b'event: error\ndata: {"message":"went away"}\n\n', "went away"),
        (b'event: error\ndata: {"error":{"message":"went away"}}\n\n', "went away"),
        (b"event: error\ndata: went away\n\n", "went away"),
        (b'data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n', "Overloaded"),
        (b'data: {"choices":[{"delta":{},"finish_reason":"error"}],"error":{"message":"lost"}}\n\n', None),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 300])
def test_an_error_in_a_stream_of_status_200(decode, chunk, event: bytes, text: str | None, before: int) -> None:
    """An error counts at any position, with the server's text, also before a [DONE]."""
    answer = decode(chunk(content="x") * before + event + DONE)
    assert answer.error is not None
    assert text is None or answer.error == text
    assert len(answer.event_ns) == before
    assert answer.malformed is None


@pytest.mark.parametrize("nothing", [b"null", b'""', b"{}", b"false"])
def test_an_empty_error_is_none(decode, chunk, nothing: bytes) -> None:
    """Servers send `"error": null` and the like in good chunks."""
    good = b'data: {"error":' + nothing + b',"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'
    assert decode(good, DONE).error is None


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_an_answer_that_the_server_broke_off(decode, chunk, reason: str) -> None:
    """A finish reason that means "gave up" is an error, not an end."""
    assert reason in (decode(chunk(content="x"), chunk(reason), DONE).error or "")
