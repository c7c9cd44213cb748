"""HTTP framing: any split of the bytes gives the same body; anything that is no response is a failure by its kind."""

import gzip
import itertools
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.adapters.http.failures import WireError
from loadgen.adapters.http.response import Response
from loadgen.core.record import FailureKind
from loadgen.engine.ports import Inbox
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, chunk, plain

EVENTS = [b'data: {"a":1}\n\n', "data: 語\r\n\r\n".encode(), b"data: [DONE]\n\n"]
STREAM = CHUNKED + b"".join(map(chunk, EVENTS)) + LAST_CHUNK
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\nContent-Type: a/b\r\n\r\n"
GZIP_HEAD = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"


def fed(*reads: bytes) -> tuple[Response, Inbox]:
    """A response fed with reads that came in at 0, 1, 2, …"""
    inbox = Inbox()
    response = Response(inbox)
    for stamp, data in enumerate(reads):
        response.feed(data, stamp)
    return response, inbox


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """Data cut at each position (modulo its length)."""
    ends = sorted({cut % len(data) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


@settings(deadline=None)  # the first example may meet a busy machine
@given(cuts=st.lists(st.integers(min_value=0, max_value=10_000), max_size=12), informational=st.booleans())
def test_any_split_gives_the_same_body(cuts: list[int], informational: bool) -> None:
    """However the bytes arrive: same body, same headers, complete, and stamps that never fall."""
    data = (CONTINUE if informational else b"") + STREAM
    response, inbox = fed(*split(data, cuts))
    assert response.complete
    assert response.keep_alive
    assert b"".join(inbox.pieces) == b"".join(EVENTS)
    assert (inbox.status, inbox.content_type) == (200, "text/event-stream")
    assert inbox.stamps == sorted(inbox.stamps)
    assert len(inbox.stamps) == len(inbox.pieces)


def test_byte_by_byte_each_piece_has_the_stamp_of_its_own_byte() -> None:
    """Fed one byte at a time, a body byte carries the stamp at which exactly it arrived."""
    _, inbox = fed(*(bytes([byte]) for byte in STREAM))
    assert all(STREAM[stamp : stamp + 1] == piece for stamp, piece in zip(inbox.stamps, inbox.pieces, strict=True))
    assert inbox.headers_ns == len(CHUNKED) - 1


def test_chunks_of_one_read_share_its_stamp() -> None:
    """Several chunks in one read are several pieces with equal stamps: a gap of zero is legal."""
    _, inbox = fed(STREAM)
    assert inbox.pieces == EVENTS
    assert inbox.stamps == [0, 0, 0]


def test_informational_responses_leave_no_trace() -> None:
    """100 and 103 set neither status nor headers_ns, and their headers are not the response's."""
    response, inbox = fed(CONTINUE)
    assert (inbox.status, inbox.headers_ns, inbox.content_type, response.complete) == (None, None, None, False)
    response.feed(plain(b"x"), 9)
    assert (inbox.status, inbox.headers_ns, inbox.content_type) == (200, 9, "application/json")


@pytest.mark.parametrize(
    ("extra", "keep_alive"),
    [(b"", True), (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", False), (b"garbage", False), (b"\0", False)],
)
def test_what_follows_the_message_costs_the_connection_not_the_response(extra: bytes, keep_alive: bool) -> None:
    """Bytes behind the end leave the response as it is and the connection unfit for another."""
    response, inbox = fed(plain(b"body") + extra)
    assert response.complete
    assert response.keep_alive is keep_alive
    assert (inbox.status, inbox.pieces) == (200, [b"body"])


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", True),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", False),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", False),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", True),
        ("HTTP/1.1 204 No Content\r\n\r\n", True),
    ],
)
def test_keep_alive_as_the_server_says(head: str, keep_alive: bool) -> None:
    """Version and Connection header decide whether the connection may be used again."""
    response, _ = fed(head.encode())
    assert response.complete
    assert response.keep_alive is keep_alive


def test_a_body_without_framing_lasts_until_the_close() -> None:
    """No length and not chunked: complete at the end of the stream, and only then."""
    response, inbox = fed(b"HTTP/1.1 200 OK\r\n\r\nab", b"cd")
    assert not response.complete
    response.end_of_stream(authenticated=True)
    assert response.complete
    assert b"".join(inbox.pieces) == b"abcd"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-",
        plain(b"abc")[:-1],
        CHUNKED,
        STREAM[:-1],  # the last chunk's empty line is not whole
        STREAM[: -len(LAST_CHUNK)] + b"0\r\n",
        CHUNKED + b"5\r\nab",
    ],
)
def test_the_end_of_the_stream_inside_a_message_is_truncation(data: bytes) -> None:
    """A close before the message's own end is never taken for its end, not even after the zero of the last chunk."""
    response, _ = fed(data)
    with pytest.raises(WireError) as caught:
        response.end_of_stream(authenticated=True)
    assert caught.value.kind is FailureKind.TRUNCATED


@pytest.mark.parametrize(
    "data",
    [
        b"\x15\x03\x03\x00\x02\x02\x46",  # a TLS alert
        b"<html>",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"3\r\nabcd\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\n" + b"X-Filler: %b\r\n" % (b"x" * 1000) * 300,
    ],
)
def test_what_is_not_http_is_a_protocol_failure(data: bytes) -> None:
    """Other protocols, broken chunks, an encoding never asked for, endless headers."""
    with pytest.raises(WireError) as caught:
        fed(data)
    assert caught.value.kind is FailureKind.PROTOCOL
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(("value", "expected"), [("3", 3.0), ("0.5", 0.5), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_retry_after_in_seconds(value: str, expected: float | None) -> None:
    """Seconds are kept, a date is not guessed at."""
    _, inbox = fed(plain(b"{}", status="429 Too Many Requests", headers=f"Retry-After: {value}\r\n"))
    assert (inbox.status, inbox.retry_after_s) == (429, expected)


def test_a_trailer_is_not_a_header() -> None:
    """Fields behind the last chunk do not replace those of the head."""
    response, inbox = fed(CHUNKED + chunk(b"x") + b"0\r\nContent-Type: text/evil\r\n\r\n")
    assert response.complete
    assert inbox.content_type == "text/event-stream"


@settings(deadline=None)  # the first example may meet a busy machine
@given(cuts=st.lists(st.integers(min_value=0, max_value=10_000), max_size=8), members=st.integers(1, 3))
def test_gzip_is_decoded_as_it_arrives(cuts: list[int], members: int) -> None:
    """Any split of a gzip body, of one member or more, gives the plain text; each piece keeps its read's stamp."""
    bodies = [b"".join(EVENTS) * (1 + member) for member in range(members)]
    packed = b"".join(map(gzip.compress, bodies))
    response, inbox = fed(*split(GZIP_HEAD + chunk(packed) + LAST_CHUNK, cuts))
    assert response.complete
    assert b"".join(inbox.pieces) == b"".join(bodies)
    assert len(inbox.stamps) == len(inbox.pieces)


def test_both_forms_of_deflate_are_decoded() -> None:
    """`deflate` means zlib's form; the raw form that some servers send is understood too."""
    raw = zlib.compressobj(wbits=-15)
    for packed in (zlib.compress(b"text"), raw.compress(b"text") + raw.flush()):
        _, inbox = fed(plain(packed, headers="Content-Encoding: deflate\r\n"))
        assert inbox.pieces == [b"text"]


def test_broken_gzip_is_protocol_and_cut_gzip_is_truncated() -> None:
    """Neither is an unhandled error, and neither passes for a whole body."""
    packed = gzip.compress(b"text" * 100)
    with pytest.raises(WireError) as broken:
        fed(plain(b"\x1f\x8b" + b"\xff" * 50, headers="Content-Encoding: gzip\r\n"))
    assert broken.value.kind is FailureKind.PROTOCOL
    with pytest.raises(WireError) as cut:
        fed(plain(packed[: len(packed) // 2], headers="Content-Encoding: gzip\r\n"))
    assert cut.value.kind is FailureKind.TRUNCATED


def test_an_error_page_in_an_unknown_encoding_keeps_its_status() -> None:
    """A 502 in brotli is a 502: the body stays raw."""
    response, inbox = fed(plain(b"\x0b\x01", status="502 Bad Gateway", headers="Content-Encoding: br\r\n"))
    assert response.complete
    assert (inbox.status, inbox.pieces) == (502, [b"\x0b\x01"])
