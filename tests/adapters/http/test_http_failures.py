"""Each way a server or network can fail, on both transports: an Ending with its kind, never an exception."""

import asyncio
import collections
import gzip
import socket
import threading
import time
from pathlib import Path

import pytest

from loadgen.core.errors import TargetError
from loadgen.core.record import FailureKind
from loadgen.engine.ports import Timeouts
from tests.adapters.http.exchanges import TRANSPORTS, exchange, native, text
from tests.fakes.scripted_server import (
    CHUNKED,
    LAST_CHUNK,
    Peer,
    Script,
    ScriptedServer,
    answering,
    answering_once,
    chunk,
    plain,
)

MS = 1_000_000
HASTY = Timeouts(connect_s=0.3, idle_s=0.2, total_s=None)


@pytest.fixture(params=sorted(TRANSPORTS))
def transport_to(request):
    """Both transports, one after the other."""
    return TRANSPORTS[request.param]


def free_port() -> int:
    """A port where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def has_ipv6() -> bool:
    """Whether this machine has an IPv6 loopback."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def sending_then_reset(*pieces: bytes) -> Script:
    """Answers with pieces, gives them time to be read, and resets."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(*pieces)
        time.sleep(0.1)
        peer.reset()

    return script


def sending_then_silent(*pieces: bytes) -> Script:
    """Answers with pieces and then nothing, holding the connection."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(*pieces)
        peer.wait_for_close()

    return script


async def test_a_whole_exchange(transport_to) -> None:
    """Chunks arrive with rising stamps between sent and closed; the message is complete."""
    with ScriptedServer(answering(CHUNKED, chunk(b"one"), chunk(b"two"), LAST_CHUNK, pause_s=0.01)) as server:
        async with transport_to(server.url) as transport:
            await transport.open(1)
            ending, inbox = await exchange(transport)
    assert (ending.kind, ending.message) == (None, None)
    assert (inbox.status, inbox.content_type) == (200, "text/event-stream")
    assert inbox.pieces == [b"one", b"two"]
    assert inbox.sent_ns < inbox.headers_ns <= inbox.stamps[0] < inbox.stamps[1] <= ending.closed_ns
    assert inbox.stamps[1] - inbox.stamps[0] >= 5 * MS
    assert not inbox.resent


async def test_error_statuses_are_whole_exchanges(transport_to) -> None:
    """A 429 and a 502 with HTML are the server's answers: complete, with status, body and Retry-After."""
    answers = [plain(b"slow", status="429 Too Many Requests", headers="Retry-After: 2\r\n")]
    answers += [plain(b"<html>bad</html>", status="502 Bad Gateway")]

    def script(peer: Peer) -> None:
        for answer in answers:
            peer.read_request()
            peer.send(answer)

    with ScriptedServer(script) as server:
        async with transport_to(server.url) as transport:
            first_ending, first = await exchange(transport)
            second_ending, second = await exchange(transport)
    assert (first_ending.kind, first.status, first.retry_after_s, text(first)) == (None, 429, 2.0, b"slow")
    assert (second_ending.kind, second.status, text(second)) == (None, 502, b"<html>bad</html>")


async def test_refused_connection(transport_to) -> None:
    """Nothing listens: kind connect from an exchange, with its time; TargetError naming the URL from `open`."""
    url = f"http://127.0.0.1:{free_port()}"
    async with transport_to(url) as transport:
        ending, inbox = await exchange(transport)
        with pytest.raises(TargetError, match=url):
            await transport.open(3)
    assert ending.kind is FailureKind.CONNECT
    assert inbox.sent_ns <= ending.closed_ns
    assert inbox.first_byte_ns is None


async def test_a_name_that_does_not_resolve(transport_to) -> None:
    """An unknown host is a connect failure."""
    async with transport_to("http://no-such-host.invalid:80") as transport:
        ending, _ = await exchange(transport)
    assert ending.kind in (FailureKind.CONNECT, FailureKind.CONNECT_TIMEOUT)


async def test_connect_timeout(transport_to) -> None:
    """A listener whose backlog is full answers no handshake: connect_timeout, at the limit and not before."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        async with transport_to(f"http://127.0.0.1:{listener.getsockname()[1]}", timeouts=HASTY) as transport:
            ending, inbox = await exchange(transport)
        for filler in fillers:
            filler.close()
    assert ending.kind is FailureKind.CONNECT_TIMEOUT
    assert ending.closed_ns - inbox.sent_ns >= 290 * MS


async def test_read_timeout(transport_to) -> None:
    """Nothing of a response within the limit: read_timeout."""
    with ScriptedServer(sending_then_silent()) as server:
        async with transport_to(server.url, timeouts=HASTY) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.READ_TIMEOUT
    assert 200 * MS <= ending.closed_ns - inbox.sent_ns < 2000 * MS


async def test_idle_timeout_keeps_what_came(transport_to) -> None:
    """Seven tokens, then silence with the socket open: idle_timeout, with the tokens kept."""
    with ScriptedServer(sending_then_silent(CHUNKED, *[chunk(b"t")] * 7)) as server:
        async with transport_to(server.url, timeouts=HASTY) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.IDLE_TIMEOUT
    assert text(inbox) == b"t" * 7
    assert ending.closed_ns - inbox.stamps[-1] >= 200 * MS


async def test_total_timeout_in_the_middle_of_a_lively_stream(transport_to) -> None:
    """A stream that never pauses long enough to be idle still ends at the total limit."""
    script = sending_slowly(CHUNKED, chunk(b"t"))
    with ScriptedServer(script) as server:
        async with transport_to(server.url, timeouts=Timeouts(idle_s=5.0, total_s=0.3)) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.TOTAL_TIMEOUT
    assert 300 * MS <= ending.closed_ns - inbox.sent_ns < 2000 * MS
    assert len(inbox.pieces) > 3


def sending_slowly(head: bytes, piece: bytes) -> Script:
    """Sends a piece every 20 ms until the client has enough."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(head)
        while True:
            peer.send(piece, pause_s=0.02)

    return script


async def test_reset_inside_the_response(transport_to) -> None:
    """A reset after four events is a read failure that keeps them."""
    with ScriptedServer(sending_then_reset(CHUNKED, *[chunk(b"e")] * 4)) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.READ
    assert text(inbox) == b"eeee"


@pytest.mark.parametrize("script", [sending_then_reset(), answering_once()], ids=["reset", "close"])
async def test_a_fresh_connection_lost_before_any_byte(transport_to, script: Script) -> None:
    """Not a stale keep-alive, so not sent again: a read failure, and the server saw one request."""
    with ScriptedServer(script) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.READ
    assert not inbox.resent
    assert server.connections == 1


@pytest.mark.parametrize(
    "pieces",
    [
        (CHUNKED, chunk(b"half")),
        (CHUNKED, chunk(b"half"), b"0\r\n"),
        (plain(b"whole body")[:-4],),
    ],
    ids=["no last chunk", "half a last chunk", "short of its length"],
)
async def test_truncated(transport_to, pieces: tuple[bytes, ...]) -> None:
    """A close inside a framed body is truncation, not an end."""
    with ScriptedServer(answering_once(*pieces)) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.TRUNCATED
    assert inbox.pieces


async def test_cut_gzip_is_truncated(transport_to) -> None:
    """A compressed body that stops half-way is a failure of that request, not an unhandled zlib error."""
    packed = gzip.compress(b"text" * 100)
    answer = plain(packed[: len(packed) // 2], headers="Content-Encoding: gzip\r\n")
    with ScriptedServer(answering(answer)) as server:
        async with transport_to(server.url) as transport:
            ending, _ = await exchange(transport)
    assert ending.kind is FailureKind.TRUNCATED


async def test_gzip_is_decoded(transport_to) -> None:
    """A server that compresses although identity was asked for is understood."""
    with ScriptedServer(answering(plain(gzip.compress(b"text"), headers="Content-Encoding: gzip\r\n"))) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == b"text"


async def test_not_http(transport_to) -> None:
    """A server of another protocol: kind protocol."""
    with ScriptedServer(answering_once(b"220 mail.example ESMTP\r\n\r\n")) as server:
        async with transport_to(server.url) as transport:
            ending, _ = await exchange(transport)
    assert ending.kind is FailureKind.PROTOCOL


async def test_body_until_close(transport_to) -> None:
    """A response without framing is complete when the server closes in order."""
    with ScriptedServer(answering_once(b"HTTP/1.1 200 OK\r\n\r\n", b"all of it")) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == b"all of it"


async def test_a_unix_socket(transport_to, tmp_path: Path) -> None:
    """`unix:///path` reaches the socket, with a plain Host."""
    hosts = []

    def script(peer: Peer) -> None:
        while (request := peer.read_request()) is not None:
            hosts.append(request.headers["host"])
            peer.send(plain(b"here"))

    with ScriptedServer(script, family=socket.AF_UNIX, unix_path=tmp_path / "s.sock") as server:
        async with transport_to(server.url) as transport:
            await transport.open(0)
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == b"here"
    assert hosts == ["localhost"]


async def test_a_missing_unix_socket(transport_to, tmp_path: Path) -> None:
    """No socket file: kind connect."""
    async with transport_to(f"unix://{tmp_path}/none.sock") as transport:
        ending, _ = await exchange(transport)
    assert ending.kind is FailureKind.CONNECT


async def test_a_full_unix_backlog_is_waited_for(tmp_path: Path) -> None:
    """A unix connect that finds the backlog full is tried again, not mistaken for connected."""
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as filler:
            filler.connect(str(path))
            async with native(f"unix://{path}", timeouts=HASTY) as transport:
                ending, _ = await exchange(transport)
                assert ending.kind is FailureKind.CONNECT_TIMEOUT
                asyncio.get_running_loop().call_later(0.05, lambda: listener.accept()[0].close())
                ending, inbox = await exchange(transport)
                assert ending.kind is FailureKind.READ_TIMEOUT
                assert inbox.connect_ns >= 45 * MS


async def test_ipv6(transport_to) -> None:
    """An IPv6 literal in brackets is connected to and named so in Host."""
    hosts = []

    def script(peer: Peer) -> None:
        hosts.append(peer.read_request().headers["host"])
        peer.send(plain(b"six"))

    if not has_ipv6():
        pytest.skip("no IPv6 loopback here")
    with ScriptedServer(script, family=socket.AF_INET6) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
        authority = f"[::1]:{server.port}"
    assert ending.kind is None
    assert text(inbox) == b"six"
    assert hosts == [authority]


async def test_every_address_of_a_name_is_tried(transport_to) -> None:
    """`localhost` may be ::1 and 127.0.0.1; a server on the second alone is reached."""
    with ScriptedServer(answering(plain(b"four"))) as server:
        async with transport_to(f"http://localhost:{server.port}") as transport:
            await transport.open(2)
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == b"four"


async def test_proxy_variables_are_ignored(transport_to, monkeypatch: pytest.MonkeyPatch) -> None:
    """With HTTP_PROXY set to a dead port the request still goes straight to the server."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with ScriptedServer(answering(plain(b"direct"))) as server:
        async with transport_to(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == b"direct"


async def test_240_requests_are_in_flight_at_once(transport_to) -> None:
    """No hidden limit on connections: the server answers only once it has all 240 requests."""
    arrived, all_there = [], threading.Event()

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            arrived.append(peer.number)
            if len(arrived) == 240:
                all_there.set()
            all_there.wait(20)
            peer.send(plain(b"ok"))

    with ScriptedServer(script) as server:
        async with transport_to(server.url, timeouts=Timeouts(idle_s=30.0)) as transport:
            done = await asyncio.gather(*(exchange(transport, request_id=f"r-{number}") for number in range(240)))
    assert collections.Counter((ending.kind, ending.message) for ending, _ in done) == {(None, None): 240}
    assert all_there.is_set()
    assert server.connections == 240


async def test_no_retries(transport_to) -> None:
    """A 503 and a 429 reach the server once each and are what the caller gets."""
    seen = []

    def script(peer: Peer) -> None:
        while (request := peer.read_request()) is not None:
            seen.append(request.headers["x-request-id"])
            peer.send(plain(b"{}", status="503 Busy", headers="Retry-After: 0\r\n"))

    with ScriptedServer(script) as server:
        async with transport_to(server.url) as transport:
            _, inbox = await exchange(transport, request_id="only-once")
    assert inbox.status == 503
    assert seen == ["only-once"]


async def test_redirects_are_not_followed(transport_to) -> None:
    """A redirect is an answer with its status; credentials go nowhere else."""
    target = "Location: http://127.0.0.1:1/elsewhere\r\n"
    with ScriptedServer(answering(plain(b"", status="307 Temporary Redirect", headers=target))) as server:
        async with transport_to(server.url, api_key="sk-1") as transport:
            ending, inbox = await exchange(transport)
    assert (ending.kind, inbox.status) == (None, 307)
    assert server.connections == 1
