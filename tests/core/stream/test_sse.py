"""Bytes to events, by the WHATWG rules."""

import pytest

from loadgen.core.stream.sse import SseDecoder, SseEvent


def datas(*pieces: bytes, **options: int) -> list[bytes]:
    decoder = SseDecoder(**options)
    return [event.data for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a\n\n", [b" a"]),
        (b"data: a\n\ndata: b\n\ndata: c\n\n", [b"a", b"b", b"c"]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", [b"a", b"b", b"c"]),
        (b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", [b"a", b"b", b"c"]),
        (b"data: a\r\ndata: b\r\r", [b"a\nb"]),
        (b'data: {"x":\ndata: 1\ndata: }\n\n', [b'{"x":\n1\n}']),
        (b": comment\n\n:\n\ndata: a\n: within\ndata: b\n\n", [b"a\nb"]),
        (b"retry: 12500\n\nid: 41\n\nevent: heartbeat\n\ndata: a\n\n", [b"a"]),
        (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
        (b"data: a\nfoo: bar\nDATA: b\n data: c\ndatax: d\n\n", [b"a"]),
        (b"\n\n\r\r\ndata: a\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
        (b"data: a\n\ndata: lost", [b"a"]),
        (b"data: a\n\ndata: lost\n", [b"a"]),
    ],
)
def test_whole_byte_by_byte_and_with_more_behind(stream: bytes, expected: list[bytes]) -> None:
    """Every legal form gives its events, whole, one byte at a time, and with another event after it."""
    assert datas(stream) == expected
    assert datas(*(stream[i : i + 1] for i in range(len(stream)))) == expected
    if not stream.endswith((b"lost", b"lost\n", b"data:")):
        assert datas(stream + b"data: more\n\n") == [*expected, b"more"]


@pytest.mark.parametrize("code", [0x2028, 0x2029, 0x85, 0x0B, 0x0C, 0x1C, 0x1D, 0x1E])
def test_only_cr_and_lf_end_a_line(code: int) -> None:
    """Characters that Unicode calls line breaks stay inside their line."""
    text = f"one{chr(code)}two".encode()
    assert datas(b"data: " + text + b"\n\n") == [text]


@pytest.mark.parametrize("cut", range(1, 3))
def test_a_character_cut_by_a_read_is_whole_again(cut: int) -> None:
    """The three bytes of a character may come in two reads."""
    character = "語".encode()
    assert datas(b"data: " + character[:cut], character[cut:] + b"\n\n") == [character]


def test_a_crlf_cut_by_a_read_is_one_line_end() -> None:
    """A CR completes its event at once, and the LF that the next read starts with is not another line."""
    decoder = SseDecoder()
    assert [event.data for event in decoder.feed(b"data: a\r\n\r")] == [b"a"]
    assert decoder.feed(b"\ndata: b\r") == []
    assert decoder.feed(b"\n") == []
    assert [event.data for event in decoder.feed(b"\r")] == [b"b"]


def test_event_and_id_fields() -> None:
    """The type holds for one event, the id until another one; an id with NUL is ignored."""
    decoder = SseDecoder()
    stream = b"event: error\nid: 7\ndata: a\n\ndata: b\n\nid: 8\0\nevent:x\n\nid\ndata: c\n\n"
    assert decoder.feed(stream) == [SseEvent(b"a", b"error", b"7"), SseEvent(b"b", b"", b"7"), SseEvent(b"c", b"", b"")]


def test_the_remainder_is_what_has_no_end() -> None:
    """An event without its empty line is never dispatched; it can be looked at."""
    decoder = SseDecoder()
    assert len(decoder.feed(b"data: a\n\ndata: b\ndata: c")) == 1
    assert decoder.remainder == b"b\ndata: c"
    assert SseDecoder().remainder == b""


def test_events_of_more_than_a_megabyte() -> None:
    """A line of 5 MB in 64 KiB reads is one event: no reader limit but our own applies."""
    line = b"x" * 5_000_000
    stream = b"data: " + line + b"\n\ndata: b\n\n"
    assert datas(*(stream[i : i + 65536] for i in range(0, len(stream), 65536))) == [line, b"b"]


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    "event",
    [b"data: " + b"x" * 1001 + b"\n\n", b"data: 56789\n" * 200 + b"\n", b"data\n" * 1001 + b"\n", b":" + b"x" * 1000],
)
def test_the_cap_ends_the_stream(event: bytes, size: int) -> None:
    """An event over the cap gives nothing, whether it comes whole or in pieces; what came before it stands."""
    decoder = SseDecoder(max_event_bytes=1000)
    stream = b"data: a\n\n" + event + b"data: b\n\n"
    events = [event for i in range(0, len(stream), size) for event in decoder.feed(stream[i : i + size])]
    assert [event.data for event in events] == [b"a"]
    assert decoder.overflowed
    assert not decoder.remainder


def test_many_events_may_exceed_the_cap_together() -> None:
    """The cap is for one event."""
    assert len(datas(b"data: 1234567890\ndata: 12345\n\n" * 50, max_event_bytes=40)) == 50
