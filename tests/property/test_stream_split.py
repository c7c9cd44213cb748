"""Any split of a stream's bytes gives the same events, the same answer and the stamps that the rule asks for."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.request import Endpoint
from loadgen.core.stream.answer import Answer
from loadgen.core.stream.openai import AnswerDecoder
from loadgen.core.stream.sse import SseDecoder, SseEvent

STREAMS = Path(__file__).parents[1] / "golden" / "streams"
INDEX = json.loads((STREAMS / "index.json").read_text())


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in pairwise(edges)]


def events_of(pieces: list[bytes], cap: int = 1 << 20) -> tuple[list[SseEvent], list[int], bytes, bool]:
    """Events, for each the offset at which the piece that completed it ends, the remainder, whether it overflowed."""
    decoder, events, ends, taken = SseDecoder(cap), [], [], 0
    for piece in pieces:
        taken += len(piece)
        for event in decoder.feed(piece):
            events.append(event)
            ends.append(taken)
    return events, ends, decoder.remainder, decoder.overflowed


def answer_of(name: str, pieces: list[bytes], **options: object) -> Answer:
    """The answer to the pieces, each stamped with the offset of its last byte."""
    facts = INDEX[name]
    decoder = AnswerDecoder(
        Endpoint(facts["endpoint"]), **{"keep_text": True, "content_type": facts["content_type"], **options}
    )
    taken = 0
    for piece in pieces:
        taken += len(piece)
        decoder.feed(taken, piece)
    return decoder.finish()


def timeless(answer: Answer) -> Answer:
    return replace(answer, event_ns=(0,) * len(answer.event_ns), last_ns=None if answer.last_ns is None else 0)


def assert_storable(answer: Answer) -> None:
    message = json.dumps(answer.assistant_message, ensure_ascii=False)
    for kept in (answer.text, answer.error, answer.malformed, answer.finish_reason, answer.body_start, message):
        assert kept is None or kept.encode().decode() == kept


line_ends = st.sampled_from(["\n", "\r", "\r\n"])
lines = st.one_of(
    st.text(max_size=12).map(lambda text: "data: " + re.sub("[\r\n]", "", text)),
    st.text(max_size=12).map(lambda text: ":" + re.sub("[\r\n]", "", text)),
    st.sampled_from(
        [
            "",
            "",
            "",
            "data",
            "data:",
            "data:x",
            "event: error",
            "id: 1",
            "retry: 5",
            "foo: bar",
            "語: é",
            "data: \u2028",
        ]
    ),
)
sse_streams = st.builds(
    lambda start, pairs: start + "".join(line + end for line, end in pairs).encode(),
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"]),
    st.lists(st.tuples(lines, line_ends), max_size=12),
)
places = st.lists(st.integers(0, 1 << 16), max_size=12)


def by_the_rules(data: bytes) -> list[bytes]:
    """The data of each event, written down from the specification in the plainest way, for whole input."""
    events, held = [], []
    text = data.removeprefix(b"\xef\xbb\xbf")
    for line in re.split(b"\r\n|\r|\n", text)[:-1]:
        if not line:
            if held:
                events.append(b"\n".join(held))
            held = []
            continue
        name, _, value = line.partition(b":")
        if name == b"data":
            held.append(value[1:] if value[:1] == b" " else value)
    return events


@given(sse_streams, places)
def test_events_do_not_depend_on_the_split(data: bytes, where: list[int]) -> None:
    """Whole, cut anywhere and byte by byte: the same events, which are those of the specification."""
    whole, _, rest, _ = events_of([data])
    assert [event.data for event in whole] == by_the_rules(data)
    for pieces in (cut(data, where), [data[i : i + 1] for i in range(len(data))]):
        events, ends, remainder, _ = events_of(pieces)
        assert events == whole
        assert remainder == rest
        assert ends == sorted(ends)


@given(sse_streams, places)
def test_an_event_is_dispatched_by_the_piece_with_its_last_byte(data: bytes, where: list[int]) -> None:
    """The offset at which an event is complete, byte by byte, lies in the piece that dispatches it."""
    _, exact, _, _ = events_of([data[i : i + 1] for i in range(len(data))])
    pieces = cut(data, where)
    _, ends, _, _ = events_of(pieces)
    edges = [sum(len(piece) for piece in pieces[: i + 1]) for i in range(len(pieces))]
    assert ends == [next(edge for edge in edges if edge >= end) for end in exact]


@given(sse_streams, places, st.integers(1, 20))
def test_the_cap_does_not_depend_on_the_split(data: bytes, where: list[int], cap: int) -> None:
    """What the cap lets through is the same however the bytes come."""
    whole, _, _, overflowed = events_of([data], cap)
    for pieces in (cut(data, where), [data[i : i + 1] for i in range(len(data))]):
        events, _, _, too = events_of(pieces, cap)
        assert (events, too) == (whole, overflowed)


@pytest.mark.parametrize("name", sorted(INDEX))
def test_recorded_streams_byte_by_byte(name: str) -> None:
    """Each recorded body gives one answer, whole and byte by byte, and every event the offset of its last byte."""
    data = (STREAMS / name).read_bytes()
    whole = answer_of(name, [data])
    bytewise = answer_of(name, [data[i : i + 1] for i in range(len(data))])
    assert timeless(bytewise) == timeless(whole)
    assert len(set(bytewise.event_ns)) == len(bytewise.event_ns), "no two events end with the same byte"
    for offset in bytewise.event_ns:
        assert data[:offset].endswith((b"\n\n", b"\r\n\r", b"\r\r"))


@pytest.mark.parametrize("name", sorted(INDEX))
@settings(max_examples=15)
@given(where=places)
def test_recorded_streams_cut_anywhere(name: str, where: list[int]) -> None:
    """Any cut of a recorded body gives the same answer."""
    data = (STREAMS / name).read_bytes()
    assert timeless(answer_of(name, cut(data, where))) == timeless(answer_of(name, [data]))


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("name", sorted(name for name in INDEX if name.endswith(".sse")))
def test_recorded_streams_with_other_line_ends(name: str, end: bytes) -> None:
    """The same stream with other line ends, keep-alives between the events and nothing else is the same answer."""
    data = (STREAMS / name).read_bytes()
    alive = end + end + b": keep-alive" + end + end
    other = end.join(re.split(b"\r\n|\r|\n", data)).replace(end + end, alive)
    expected = replace(timeless(answer_of(name, [data])), body_start=None)
    assert replace(timeless(answer_of(name, [other])), body_start=None) == expected


@given(
    st.lists(st.binary(max_size=200), max_size=6),
    st.sampled_from(list(Endpoint)),
    st.sampled_from(["text/event-stream", "application/json", "text/html", None]),
)
@settings(max_examples=200)
def test_random_bytes_never_raise(pieces: list[bytes], endpoint: Endpoint, content_type: str | None) -> None:
    """Whatever a server sends is data."""
    decoder = AnswerDecoder(endpoint, keep_text=True, content_type=content_type, max_event_bytes=300)
    for piece in pieces:
        decoder.feed(1, piece)
    assert not decoder.finish().event_ns or content_type != "text/html"


NAMES = """choices delta message content reasoning tool_calls function name arguments index finish_reason usage error
prompt_tokens completion_tokens token_ids logprobs metrics speculative_decoding acceptance_histogram sglext timings
draft_n type response status output item delta object detail text"""
any_text = st.text(st.characters(exclude_categories=()), max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(json_values, max_size=4), st.sampled_from(list(Endpoint)), st.booleans(), st.booleans())
@settings(max_examples=300)
def test_known_names_with_any_values_never_raise(
    values: list[object], endpoint: Endpoint, ascii_only: bool, streamed: bool
) -> None:
    """Documented names with values of any type, NaN and lone surrogates included, are data; kept text can be stored."""
    texts = [json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass") for value in values]
    decoder = AnswerDecoder(
        endpoint, keep_text=True, content_type="text/event-stream" if streamed else "application/json"
    )
    for text in texts:
        decoder.feed(5, b"data: " + text + b"\n\n" if streamed else text)
    answer = decoder.finish()
    assert_storable(answer)
    assert answer.event_tokens is None or len(answer.event_tokens) == len(answer.event_ns)
    assert all(count is None or count >= 0 for count in (answer.usage.input_tokens, answer.usage.output_tokens))


def places_in(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value in a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, member in members for place in places_in(member, (*path, key)))]


@given(st.data())
@settings(max_examples=300)
def test_recorded_events_with_a_value_changed_never_raise(data: st.DataObject) -> None:
    """Any value of a recorded body replaced by any other is data: kept text can be stored, a stream still reads."""
    name = data.draw(st.sampled_from(sorted(INDEX)))
    lines = (STREAMS / name).read_bytes().splitlines(keepends=True)
    number = data.draw(st.sampled_from([i for i, line in enumerate(lines) if b"{" in line]))
    before, brace, rest = lines[number].partition(b"{")
    event = json.loads(brace + rest)
    *path, last = data.draw(st.sampled_from(places_in(event)[1:]))
    inner = event
    for step in path:
        inner = inner[step]
    inner[last] = data.draw(json_values)
    lines[number] = before + json.dumps(event).encode() + b"\n" * rest.endswith(b"\n")
    answer = answer_of(name, [b"".join(lines)])
    assert_storable(answer)
    assert answer.malformed is None or name.endswith(".json")
