"""Legal but unusual manners of servers, on both transports: each is a whole answer, read like any other."""

import pytest

from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination
from tests.adapters.http.exchanges import TRANSPORTS, exchange, text
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, Request, ScriptedServer, answering_once, chunk, plain

EVENT = b'data: {"choices":[]}\n\n'
HEAD = CHUNKED.removesuffix(b"\r\n")


@pytest.fixture(params=sorted(TRANSPORTS))
def transport_to(request):
    """Both transports, one after the other."""
    return TRANSPORTS[request.param]


MANNERS = {
    "201": (CHUNKED.replace(b"200 OK", b"201 Created"), chunk(EVENT), LAST_CHUNK),
    "206": (CHUNKED.replace(b"200 OK", b"206 Partial Content"), chunk(EVENT), LAST_CHUNK),
    "no reason phrase": (CHUNKED.replace(b"200 OK", b"200"), chunk(EVENT), LAST_CHUNK),
    "informational answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n",
        CHUNKED,
        chunk(EVENT),
        LAST_CHUNK,
    ),
    "chunk extensions": (CHUNKED, b'%x;a=1;b="c;d"\r\n%b\r\n' % (len(EVENT), EVENT), b"0;last\r\n\r\n"),
    "sizes with zeros": (CHUNKED, b"000%X\r\n%b\r\n" % (len(EVENT), EVENT), b"000\r\n\r\n"),
    "trailers": (CHUNKED, chunk(EVENT), b"0\r\nContent-Type: text/plain\r\nX-Sum: 1\r\n\r\n"),
    "header bytes outside of ASCII": (HEAD, b"Server: caf\xe9 \xe6\x97\xa5 \xff\x80\r\n\r\n", chunk(EVENT), LAST_CHUNK),
    "a long header": (HEAD, b"X-Long: " + b"x" * 60_000 + b"\r\n\r\n", chunk(EVENT), LAST_CHUNK),
    "HTTP/1.0 until the close": (b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", EVENT),
    "a line of 700 kB": (CHUNKED, chunk(b"data: " + b"x" * 700_000 + b"\n\n" + EVENT), LAST_CHUNK),
}


@pytest.mark.parametrize("name", MANNERS)
async def test_unusual_manners_are_understood(transport_to, name: str) -> None:
    """No manner that HTTP allows costs a request, or changes a byte of its body."""
    with ScriptedServer(answering_once(*MANNERS[name], pause_s=0.005)) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert (ending.kind, ending.message) == (None, None)
    assert inbox.status in (200, 201, 206)
    assert inbox.content_type == "text/event-stream"
    assert text(inbox).endswith(EVENT)


async def test_a_header_of_ours_may_hold_any_latin_1(transport_to) -> None:
    """What `-H` accepts is what the server reads, in the load and in the calls before it."""
    seen: list[Request | None] = []

    def script(peer) -> None:
        seen.append(peer.read_request())
        peer.send(plain(b"{}"))

    options = {"headers": {"X-Team": "café ÿ"}}
    with ScriptedServer(script) as server:
        async with transport_to(server.url, **options) as transport:
            ending, _ = await exchange(transport)
        assert ending.kind is None
        async with control_client(Destination.from_url(server.url, **options)) as client:
            await client.get("/v1/models")
    assert [request.headers["x-team"] for request in seen if request is not None] == ["café ÿ"] * 2
