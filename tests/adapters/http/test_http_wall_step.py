"""Kernel stamps are wall time: what a step of the wall clock between arrival and read may do to them."""

import itertools

import pytest

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.connection import Connection, Reception
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.dialer import Dialer
from loadgen.adapters.http.readiness import Readiness
from loadgen.engine.ports import Inbox
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, ScriptedServer, answering, chunk

STEP_NS = 2_000_000_000


class Stepped(Reception):
    """A reception whose wall clock was stepped after the stamps were made: the offset belongs to another time."""

    step_ns = 0

    def begin_turn(self) -> None:
        super().begin_turn()
        self.offset_ns += self.step_ns


@pytest.mark.parametrize("step_ns", [-STEP_NS, STEP_NS])
async def test_a_step_of_the_wall_clock_leaves_every_stamp_inside_its_exchange(step_ns: int) -> None:
    """Set back or forward by 2 s in mid-run: stamps still lie between sending and reading, in order."""
    clock = MonotonicClock()
    reception = Stepped(clock)
    watch = Readiness(reception.begin_turn)
    pieces = (CHUNKED, chunk(b"a"), chunk(b"b"), LAST_CHUNK)
    with ScriptedServer(answering(*pieces, pause_s=0.005)) as server:
        dialled = await Dialer(Destination.from_url(server.url), stamps=True).dial(5.0)
        connection = Connection(
            dialled.sock,
            None,
            stamped=dialled.stamped,
            reception=reception,
            watch=watch,
            on_idle=lambda connection: None,
            on_closed=lambda connection: None,
        )
        request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
        for step in (0, step_ns, 0):
            reception.step_ns, inbox = step, Inbox()
            ending = await connection.start(request, inbox)
            assert ending is not None
            assert ending.kind is None
            instants = [inbox.sent_ns, inbox.headers_ns, *inbox.stamps, ending.closed_ns, clock.now_ns()]
            assert all(earlier <= later for earlier, later in itertools.pairwise(instants))
        connection.close()
        watch.close()
