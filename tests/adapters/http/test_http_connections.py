"""The native transport's connections: opened ahead, reused, replaced once, and closed."""

import asyncio
import gc
import threading
import time

import pytest

from loadgen.core.record import FailureKind
from loadgen.engine.ports import Inbox
from tests.adapters.http.exchanges import block_loop, exchange, native, open_descriptors, text, until
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, Peer, ScriptedServer, answering, chunk, plain


async def test_open_opens_ahead_and_requests_reuse() -> None:
    """Ten connections opened ahead serve ten requests at once without another; none waits for a handshake."""
    together = threading.Barrier(10)

    def script(peer: Peer) -> None:
        while peer.read_request() is not None:
            together.wait(10)
            peer.send(plain(b"ok"))

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            await transport.open(10)
            done = await asyncio.gather(*(exchange(transport) for _ in range(10)))
    assert server.connections == 10
    assert all(inbox.connect_ns is None and ending.kind is None for ending, inbox in done)


async def test_a_request_without_an_idle_connection_opens_its_own() -> None:
    """Nothing opened ahead: sent is the start of connecting, and how long that took is recorded."""
    with ScriptedServer(answering(plain(b"ok"))) as server:
        async with native(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert inbox.connect_ns is not None
    assert 0 < inbox.connect_ns <= inbox.headers_ns - inbox.sent_ns


async def test_sequential_requests_share_a_connection_and_connection_close_is_obeyed() -> None:
    """Keep-alive is used; `Connection: close` is honoured by both sides."""

    def script(peer: Peer) -> None:
        for headers in ("", "", "Connection: close\r\n"):
            peer.read_request()
            peer.send(plain(b"ok", headers=headers))
        peer.wait_for_close()

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            endings = [(await exchange(transport))[0].kind for _ in range(4)]
    assert endings == [None] * 4
    assert server.connections == 2


async def test_spares_are_kept_ready() -> None:
    """With two spares asked for, taking connections has others opened, so the next requests find them idle."""
    with ScriptedServer(answering(plain(b"ok"))) as server:
        async with native(server.url, spares=2) as transport:
            await transport.open(2)
            hold = [asyncio.create_task(exchange(transport)) for _ in range(2)]
            await until(lambda: server.connections >= 4)
            done = await asyncio.gather(*hold, exchange(transport), exchange(transport))
    assert all(inbox.connect_ns is None for _, inbox in done)


async def test_a_connection_closed_while_idle_is_not_used() -> None:
    """The server's keep-alive has ended: the next request opens a new connection and is not a resent one."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(plain(b"ok"))

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            await exchange(transport)
            block_loop(0.05)  # the close arrives unseen and is found at the next request
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert not inbox.resent
    assert server.connections == 2


async def test_bytes_on_an_idle_connection_close_it() -> None:
    """An answer to nothing (or garbage behind one) would be taken for the next request's: the connection goes."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(plain(b"first"))
        time.sleep(0.02)
        peer.send(plain(b"unasked"))
        peer.wait_for_close()

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            _, first = await exchange(transport)
            await asyncio.sleep(0.08)
            second_task = asyncio.create_task(exchange(transport))
            _, second = await second_task
    assert (text(first), text(second)) == (b"first", b"first")
    assert server.connections == 2


def dying_after(answers: int, connections: int) -> ScriptedServer:
    """Each of the first connections takes a further request after its answers and drops it unanswered."""

    def script(peer: Peer) -> None:
        for _ in range(answers if peer.number <= connections else 1000):
            if peer.read_request() is None:
                return
            peer.send(plain(b"ok"))
        peer.read_request()

    return ScriptedServer(script)


async def test_a_stale_connection_is_replaced_once_and_counted() -> None:
    """Dropped before any byte on a reused connection: sent again on a fresh one, timed from the first attempt."""
    with dying_after(1, connections=1) as server:
        async with native(server.url) as transport:
            await exchange(transport)
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert inbox.resent
    assert text(inbox) == b"ok"
    assert inbox.connect_ns < inbox.headers_ns - inbox.sent_ns
    assert server.connections == 2


async def test_a_second_loss_is_a_failure_of_its_own_kind() -> None:
    """The replacement is lost too: reused_connection, and no third attempt."""

    def script(peer: Peer) -> None:
        if peer.number == 1:
            peer.read_request()
            peer.send(plain(b"ok"))
        peer.read_request()

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            await exchange(transport)
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.REUSED_CONNECTION
    assert inbox.resent
    assert server.connections == 2


async def test_a_reused_connection_lost_inside_the_response_is_not_sent_again() -> None:
    """One byte of a reply is enough: the server knows the request, so it fails as what it is."""

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(plain(b"ok"))
        peer.read_request()
        peer.send(b"H")

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            await exchange(transport)
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.TRUNCATED
    assert not inbox.resent
    assert server.connections == 1


async def test_cancelling_closes_the_connection_at_once() -> None:
    """A cancelled exchange, before and inside the response, hangs up on the server and leaves nothing in the pool."""
    gone = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        peer.read_request()
        if peer.number == 2:
            peer.send(CHUNKED, chunk(b"x"))
        peer.wait_for_close()
        gone.release()

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            for number in (1, 2):
                inbox = Inbox()
                task = asyncio.create_task(transport.exchange(transport.prepare(b"{}", "r"), inbox))
                await until(lambda number=number: server.connections == number)
                if number == 2:
                    await until(lambda inbox=inbox: inbox.pieces)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await asyncio.to_thread(gone.acquire, True, 5)


async def test_cancelling_while_connecting_leaks_nothing() -> None:
    """Cancelled during connect, at once and after a turn of the loop: no descriptor stays open."""
    with ScriptedServer(answering(plain(b"ok"))) as server:
        async with native(server.url) as transport:
            await transport.open(0)
            before = open_descriptors()
            for turns in (0, 1, 2, 3):
                task = asyncio.create_task(transport.exchange(transport.prepare(b"{}", "r"), Inbox()))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
    assert open_descriptors() <= before


async def test_nothing_is_left_after_fifty_runs() -> None:
    """Fifty transports opened, used, cancelled and closed leave as many descriptors as before."""
    with ScriptedServer(answering(CHUNKED, chunk(b"x"), LAST_CHUNK)) as server:
        before = open_descriptors()
        for _ in range(50):
            async with native(server.url, spares=1) as transport:
                await transport.open(2)
                await asyncio.gather(*(exchange(transport) for _ in range(3)))
                doomed = asyncio.create_task(exchange(transport))
                await asyncio.sleep(0)
                doomed.cancel()
                await asyncio.wait([doomed])
        await until(lambda: open_descriptors() <= before)


async def test_a_request_leaves_nothing_for_the_cyclic_collector() -> None:
    """Parser and response point at each other while it is read; afterwards a long run has nothing to collect for it."""
    with ScriptedServer(answering(CHUNKED, chunk(b"x"), LAST_CHUNK)) as server:
        async with native(server.url) as transport:
            await exchange(transport)
            gc.collect()
            gc.disable()
            try:
                for _ in range(100):
                    await exchange(transport)
                assert gc.collect() < 100
            finally:
                gc.enable()


async def test_close_ends_what_is_under_way() -> None:
    """Closing the transport hangs up on a server in mid-answer, and the exchange ends as cancelled."""
    with ScriptedServer(lambda peer: (peer.read_request(), peer.wait_for_close())) as server:
        async with native(server.url) as transport:
            task = asyncio.create_task(exchange(transport))
            await until(lambda: server.connections == 1)
            await asyncio.sleep(0.02)
            await transport.close()
            with pytest.raises(asyncio.CancelledError):
                await task
