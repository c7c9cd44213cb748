"""The native transport's own promises: its stamps, its care with limits and large bodies."""

import asyncio
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
from tests.adapters.http.exchanges import PATH, block_loop, exchange, native, text, until
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, Peer, ScriptedServer, answering, chunk, plain

MS = 1_000_000

needs_kernel_stamps = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="receive stamps are Linux's")


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
        from tests.adapters.http.exchanges import block_loop, until, exchange, native

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
