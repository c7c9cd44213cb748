"""What is the second transport's own: HTTP/2, proxies, its timing source, its account of sent and connecting."""

import asyncio
import threading

import h2.config
import h2.connection
import h2.events
import pytest

from loadgen.adapters.http.destination import Destination
from loadgen.core.errors import ConfigError
from loadgen.core.record import FailureKind
from loadgen.core.run import TimingSource
from tests.adapters.http.exchanges import exchange, httpx, open_descriptors, text
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, Peer, ScriptedServer, answering, chunk, plain


async def test_it_says_who_stamps() -> None:
    """Stamps are a coroutine's, and no lag behind a kernel is claimed."""
    with ScriptedServer(answering(CHUNKED, chunk(b"x"), LAST_CHUNK)) as server:
        async with httpx(server.url) as transport:
            _, inbox = await exchange(transport)
            assert transport.timing_source is TimingSource.COROUTINE
    assert inbox.lag_max_ns is None


async def test_connecting_is_recorded_when_there_was_any() -> None:
    """The first request opened a connection and says how long; the second found it open."""
    with ScriptedServer(answering(plain(b"ok"))) as server:
        async with httpx(server.url) as transport:
            _, first = await exchange(transport)
            _, second = await exchange(transport)
    assert 0 < first.connect_ns <= first.headers_ns - first.sent_ns
    assert second.connect_ns is None
    assert server.connections == 1


async def test_a_lost_reused_connection_is_not_sent_again() -> None:
    """Without a way to send again in time, a stale connection is a failure of its own kind."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(plain(b"ok"))
        peer.read_request()

    with ScriptedServer(script) as server:
        async with httpx(server.url) as transport:
            await exchange(transport)
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.REUSED_CONNECTION
    assert not inbox.resent


async def test_a_proxy_is_used_when_it_is_named() -> None:
    """An explicit proxy gets the whole URL in the request line."""
    lines = []

    def script(peer: Peer) -> None:
        lines.append(peer.read_request().line)
        peer.send(plain(b"through"))

    with ScriptedServer(script) as proxy:
        async with httpx("http://model.example:8000", proxy=proxy.url) as transport:
            await transport.open(1)
            ending, inbox = await exchange(transport)
    assert (ending.kind, text(inbox)) == (None, b"through")
    assert lines == ["POST http://model.example:8000/v1/chat/completions HTTP/1.1"]


@pytest.mark.parametrize("proxy", ["", "nonsense", "ftp://host:1"])
async def test_a_bad_proxy_is_refused(proxy: str) -> None:
    """A proxy URL that cannot be used is a ConfigError before any request."""
    with pytest.raises(ConfigError, match="proxy"):
        async with httpx("http://model.example", proxy=proxy):
            pass


async def test_http2_to_a_server_that_speaks_it() -> None:
    """With prior knowledge, one connection carries several requests at once."""

    def script(peer: Peer) -> None:
        h2_side = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        h2_side.initiate_connection()
        peer.sock.sendall(h2_side.data_to_send())
        while data := peer.sock.recv(65536):
            for event in h2_side.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    h2_side.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/event-stream")])
                    h2_side.send_data(event.stream_id, b"two", end_stream=True)
            peer.sock.sendall(h2_side.data_to_send())

    with ScriptedServer(script) as server:
        async with httpx(server.url, http2=True) as transport:
            done = await asyncio.gather(*(exchange(transport) for _ in range(5)))
    assert [(ending.kind, text(inbox), inbox.status) for ending, inbox in done] == [(None, b"two", 200)] * 5
    assert server.connections == 1


async def test_http2_streams_beyond_a_connections_limit_do_not_wait() -> None:
    """A hundred and fifty requests at once: a second connection takes what the first may not, and all are in flight."""
    together = threading.Barrier(2)

    def script(peer: Peer) -> None:
        side = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        side.initiate_connection()
        peer.sock.sendall(side.data_to_send())
        streams: list[int] = []
        while len(streams) < (100 if peer.number == 1 else 50):
            events = side.receive_data(peer.sock.recv(65536))
            streams += [event.stream_id for event in events if isinstance(event, h2.events.StreamEnded)]
            peer.sock.sendall(side.data_to_send())
        together.wait(10)
        for stream in streams:
            side.send_headers(stream, [(":status", "200")], end_stream=True)
        peer.sock.sendall(side.data_to_send())
        peer.wait_for_close()

    with ScriptedServer(script) as server:
        async with httpx(server.url, http2=True) as transport:
            done = await asyncio.wait_for(asyncio.gather(*(exchange(transport) for _ in range(150))), 30)
    assert [ending.kind for ending, _ in done] == [None] * 150
    assert server.connections == 2


async def test_cancelling_frees_what_was_held() -> None:
    """Cancelled before and inside the response: the next request works, and no descriptor is left at the end."""
    before = open_descriptors()

    def script(peer: Peer) -> None:
        while (request := peer.read_request()) is not None:
            peer.send(CHUNKED, chunk(b"x"))
            if request.headers["x-request-id"] == "whole":
                peer.send(LAST_CHUNK)

    with ScriptedServer(script) as server:
        async with httpx(server.url) as transport:
            for turns in (0, 1, 40):
                task = asyncio.create_task(exchange(transport))
                for _ in range(turns):
                    await asyncio.sleep(0.001)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            ending, _ = await exchange(transport, request_id="whole")
    assert ending.kind is None
    assert open_descriptors() <= before


def test_the_control_client_talks_to_the_destination_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Base address, credentials and limits are the destination's; no environment, no redirects."""
    from loadgen.adapters.http.control import control_client

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen = []

    def script(peer: Peer) -> None:
        seen.append(peer.read_request())
        peer.send(plain(b'{"data": []}', status="302 Found", headers="Location: http://127.0.0.1:1/\r\n"))

    async def main(url: str) -> int:
        destination = Destination.from_url(url + "/gate", api_key="sk-1")
        async with control_client(destination, timeout_s=2.0) as client:
            return (await client.get(destination.request_target("/v1/models"))).status_code

    with ScriptedServer(script) as server:
        assert asyncio.run(main(server.url)) == 302
    assert seen[0].line == "GET /gate/v1/models HTTP/1.1"
    assert seen[0].headers["authorization"] == "Bearer sk-1"
    assert "content-type" not in seen[0].headers
