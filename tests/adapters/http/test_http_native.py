"""The native transport's own promises: its connections, its stamps, its care with limits and large bodies."""

import asyncio
import gc
import hashlib
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.native import NativeTransport
from loadgen.core.errors import ConfigError
from loadgen.core.record import FailureKind
from loadgen.core.run import TimingSource
from loadgen.engine.ports import Inbox, Timeouts
from tests.adapters.http.exchanges import PATH, exchange, native, open_descriptors, text
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, Peer, ScriptedServer, answering, chunk, plain

MS = 1_000_000

needs_kernel_stamps = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="receive stamps are Linux's")


async def until(condition) -> None:
    """Waits, at most 5 s, for something that another thread or the network brings about."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("did not come about in 5 s")


def block_loop(s: float, *, until=lambda: True) -> None:
    """What a busy client does to its event loop: nothing else runs for so long, and again until something is so."""
    time.sleep(s)
    while not until():
        time.sleep(s)


# Connections


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


# Bodies


async def test_a_large_request_is_sent_whole_to_a_slow_reader() -> None:
    """Eight megabytes go out in as many partial writes as the server's pace needs, unchanged."""
    digests = []

    def script(peer: Peer) -> None:
        request = peer.read_request(piece_bytes=1 << 18, pause_s=0.002)
        digests.append(hashlib.sha256(request.body).hexdigest())
        peer.send(plain(b"ok"))

    body = bytes(range(256)) * (8 << 12)
    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            ending, _ = await exchange(transport, body=body)
    assert ending.kind is None
    assert digests == [hashlib.sha256(body).hexdigest()]


async def test_an_early_answer_to_a_large_request_is_heard() -> None:
    """A 413 sent before the body was read is the response; the connection is not used again."""

    def script(peer: Peer) -> None:
        peer.read_head()
        if peer.number == 1:
            peer.send(plain(b"too large", status="413 Content Too Large"))
            threading.Event().wait(0.2)
            peer.wait_for_close()
        else:
            peer.send(plain(b"ok"))

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            ending, inbox = await exchange(transport, body=bytes(16 << 20))
            assert (ending.kind, inbox.status, text(inbox)) == (None, 413, b"too large")
            await exchange(transport)
    assert server.connections == 2


async def test_a_connection_lost_while_sending_is_a_write_failure() -> None:
    """Reset with most of the request unsent, and no answer to be heard."""

    def script(peer: Peer) -> None:
        peer.read_head()
        time.sleep(0.05)
        peer.reset()

    with ScriptedServer(script) as server:
        async with native(server.url) as transport:
            ending, _ = await exchange(transport, body=bytes(16 << 20))
    assert ending.kind is FailureKind.WRITE


async def test_a_large_response_takes_large_reads() -> None:
    """Twenty megabytes arrive whole, in far fewer reads than 16 KiB each would take."""
    body = bytes(range(256)) * (20 << 12)
    with ScriptedServer(answering(plain(body))) as server:
        async with native(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == body
    assert len(inbox.pieces) < len(body) / 16384


async def test_one_event_of_a_megabyte() -> None:
    """A single chunk beyond any line reader's limit is only bytes here."""
    event = b"data: " + b"x" * 1_200_000 + b"\n\n"
    with ScriptedServer(answering(CHUNKED, chunk(event), LAST_CHUNK)) as server:
        async with native(server.url) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is None
    assert text(inbox) == event


# Stamps


class Timed:
    """A server that sends chunks at known instants of the machine's monotonic clock."""

    def __init__(self, pieces: int, gap_s: float) -> None:
        self.sends: list[tuple[int, int]] = []
        self._pieces, self._gap_s = pieces, gap_s

    def script(self, peer: Peer) -> None:
        """Head at once, then a chunk each gap; before and after of each send are kept."""
        peer.read_request()
        peer.send(CHUNKED)
        for _ in range(self._pieces):
            time.sleep(self._gap_s)
            before = time.monotonic_ns()
            peer.send(chunk(b"data: x\n\n"))
            self.sends.append((before, time.monotonic_ns()))
        peer.send(LAST_CHUNK)


@needs_kernel_stamps
async def test_a_kernel_stamp_is_the_arrival_even_when_the_client_is_late() -> None:
    """The loop is blocked over each arrival, for less than a gap: stamps still lie at the sends, and say the lag."""
    timed = Timed(4, 0.12)
    clock = MonotonicClock()
    with ScriptedServer(timed.script) as server:
        transport = NativeTransport(Destination.from_url(server.url), clock, path=PATH)
        await transport.open(1)
        assert transport.timing_source is TimingSource.KERNEL
        inbox = Inbox()
        task = asyncio.create_task(transport.exchange(transport.prepare(b"{}", "r"), inbox))
        await asyncio.sleep(0.06)
        while not task.done():
            block_loop(0.1)  # late by up to 100 ms: a stamp taken at the read would show it
            await asyncio.sleep(0.005)  # no multiple of the gap, or every arrival might fall into the pauses
        await transport.close()
    origin = clock.origin_monotonic_ns
    assert len(inbox.stamps) == 4
    for stamp, (before, after) in zip(inbox.stamps, timed.sends, strict=True):
        assert before - 0.1 * MS <= stamp + origin <= after + 5 * MS
    assert inbox.lag_max_ns > 15 * MS
    assert not inbox.stalled_stamps


@needs_kernel_stamps
async def test_reads_too_late_to_tell_segments_apart_are_marked() -> None:
    """Blocked for several gaps, the client gets merged segments: their common stamp is marked as stalled."""
    timed = Timed(12, 0.03)
    with ScriptedServer(timed.script) as server:
        async with native(server.url) as transport:
            await transport.open(1)
            inbox = Inbox()
            task = asyncio.create_task(transport.exchange(transport.prepare(b"{}", "r"), inbox))
            await until(lambda: inbox.pieces)
            block_loop(0.001, until=lambda: len(timed.sends) >= 8)
            block_loop(0.01)
            await task
    assert inbox.stalled_stamps
    assert set(inbox.stalled_stamps) <= set(inbox.stamps)
    assert len(set(inbox.stamps)) < len(inbox.stamps) == 12


async def test_unix_sockets_are_stamped_by_this_process(tmp_path) -> None:
    """There are no kernel stamps on a unix socket: the source says so and no lag is claimed."""
    with ScriptedServer(answering(plain(b"ok")), family=socket.AF_UNIX, unix_path=tmp_path / "s") as server:
        async with native(server.url) as transport:
            ending, inbox = await exchange(transport)
            assert transport.timing_source is TimingSource.USER
    assert ending.kind is None
    assert inbox.lag_max_ns is None


# Limits


async def test_a_late_client_does_not_time_out_what_has_arrived() -> None:
    """The loop was blocked for longer than the limits while the answers came: they are read, not failed.

    There are more of them than are read in one turn of the loop, so the limits are looked at in between.
    """
    answered = []

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(plain(b"in time"))
        answered.append(peer.number)
        peer.wait_for_close()

    with ScriptedServer(script) as server:
        async with native(server.url, timeouts=Timeouts(idle_s=0.3, total_s=0.3)) as transport:
            await transport.open(150)
            tasks = [asyncio.create_task(exchange(transport)) for _ in range(150)]
            await asyncio.sleep(0)
            block_loop(0.4, until=lambda: len(answered) == 150)
            done = await asyncio.gather(*tasks)
    assert {(ending.kind, text(inbox)) for ending, inbox in done} == {(None, b"in time")}


async def test_the_total_limit_holds_while_connecting(tmp_path) -> None:
    """A total limit below the connect limit ends a request that is still connecting, as total_timeout."""
    path = tmp_path / "full.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as filler:
        listener.bind(str(path))
        listener.listen(0)
        filler.connect(str(path))
        async with native(f"unix://{path}", timeouts=Timeouts(connect_s=5.0, total_s=0.1)) as transport:
            ending, inbox = await exchange(transport)
    assert ending.kind is FailureKind.TOTAL_TIMEOUT
    assert ending.closed_ns - inbox.sent_ns >= 100 * MS


async def test_more_connections_than_this_process_may_hold_are_refused_up_front() -> None:
    """The plan needs ten million descriptors: a ConfigError that names the limit, before any load."""
    with ScriptedServer(answering(plain(b"ok"))) as server:
        async with native(server.url) as transport:
            with pytest.raises(ConfigError, match=r"connections: this (process|machine)"):
                await transport.open(10_000_000)
    assert server.connections == 0


def test_running_out_of_descriptors_is_the_clients_failure() -> None:
    """Where few descriptors are allowed, the requests beyond them fail as client_resource and the others go on."""
    program = textwrap.dedent(
        """
        import asyncio, collections, resource, sys
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        from tests.adapters.http.exchanges import exchange, native

        async def main():
            async with native(sys.argv[1]) as transport:
                done = await asyncio.gather(*(exchange(transport) for _ in range(60)))
                kinds = collections.Counter(ending.kind for ending, _ in done)
                again, _ = await exchange(transport)
            print(kinds[None] > 10, kinds["client_resource"] > 10, len(kinds) == 2, again.kind)

        asyncio.run(main())
        """
    )
    with ScriptedServer(lambda peer: (peer.read_request(), time.sleep(0.3), peer.send(plain(b"ok")))) as server:
        ran = subprocess.run(
            [sys.executable, "-c", program, server.url], capture_output=True, text=True, timeout=30, check=False
        )
    assert ran.stdout.split() == ["True", "True", "True", "None"], ran.stderr


async def test_ids_lengths_and_credentials_reach_the_server() -> None:
    """What was prepared is what the server reads: id, key, length, path with its prefix."""
    seen = []

    def script(peer: Peer) -> None:
        seen.append(peer.read_request())
        peer.send(plain(b"ok"))

    with ScriptedServer(script) as server:
        async with native(server.url + "/gate/v1", api_key="sk-1", headers={"X-Team": "a"}) as transport:
            await exchange(transport, body=b'{"a": 1}', request_id="r-42")
    request = seen[0]
    assert request.line == "POST /gate/v1/chat/completions HTTP/1.1"
    assert request.body == b'{"a": 1}'
    wanted = {"x-request-id": "r-42", "authorization": "Bearer sk-1", "x-team": "a", "accept-encoding": "identity"}
    assert wanted.items() <= request.headers.items()
