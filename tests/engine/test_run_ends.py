"""A run in virtual time: by what it ends, and what becomes of the requests that are in flight or due then."""

import asyncio
from typing import Any

import pytest

from loadgen.core.errors import StoreError
from loadgen.core.record import FailureKind, Outcome
from loadgen.core.request import Conversation, Text, Turn
from loadgen.core.run import Load, LoadMode
from loadgen.engine.runner import Run
from tests.engine.bench import Bench, closed
from tests.fakes.scripted_transport import MemorySink, Script, ScriptedTransport, chat_stream
from tests.fakes.virtual_time import FakeClock


def test_a_duration_stops_sending_at_its_end_and_lets_answers_finish() -> None:
    """Nothing is sent after the deadline; what is in flight then ends within the grace and is complete."""
    bench = Bench(closed(3, duration_s=2.0), answer=lambda n: chat_stream(0.5, 0.7))
    end = bench.execute()
    assert end.ended_by == "duration"
    assert end.window is not None
    assert end.window.end_ns - end.window.start_ns == 2_000_000_000
    assert max(at_ns for at_ns, _ in bench.transport.sent) < end.window.end_ns
    assert {record.outcome for record in bench.sink.records} == {Outcome.COMPLETED}


def test_a_run_that_runs_out_of_requests_before_its_time_has_no_window_of_that_time() -> None:
    """Six requests in one second against a duration of a minute: rates are over what was measured, not over 60 s."""
    bench = Bench(closed(3, duration_s=60.0, num_requests=6), answer=lambda n: chat_stream(0.5))
    end = bench.execute()
    assert end.ended_by == "requests"
    assert end.window is None


def test_what_outlives_the_grace_is_cancelled_and_recorded() -> None:
    """A server that never ends its answers: after the grace each request in flight is one cancelled record."""
    bench = Bench(closed(3, duration_s=1.0), answer=lambda n: Script([(1e6, b"")]), grace_s=2.0)
    end = bench.execute()
    assert [record.outcome for record in bench.sink.records] == [Outcome.CANCELLED] * 3
    assert end.requests == 3
    assert bench.transport.in_flight == 0


def test_requests_still_waiting_for_the_cap_at_the_deadline_are_dropped_and_counted() -> None:
    """10 a second for 1 s behind a cap of one with answers of 10 s: one is sent, nine are dropped, none is lost."""
    load = Load(mode=LoadMode.RATE, request_rate_rps=10.0, duration_s=1.0, max_concurrency=1)
    bench = Bench(load, answer=lambda n: chat_stream(10.0), grace_s=20.0)
    end = bench.execute()
    outcomes = [record.outcome for record in bench.sink.records]
    assert outcomes.count(Outcome.COMPLETED) == 1
    assert outcomes.count(Outcome.DROPPED) == 9
    assert end.requests == 10


def test_a_first_interrupt_drains_and_a_second_ends_at_once() -> None:
    """After `stop` nothing more is sent and answers finish; after `abort` what is in flight is cancelled."""

    async def interrupt(run: Run) -> None:
        await asyncio.sleep(1.0)
        run.stop()

    bench = Bench(closed(2, num_requests=1000), answer=lambda n: chat_stream(0.3, 0.4))
    end = bench.execute(during=interrupt)
    assert end.interrupted
    assert end.ended_by == "interrupt"
    assert {record.outcome for record in bench.sink.records} == {Outcome.COMPLETED}
    assert len(bench.sink.records) == len(bench.transport.sent) < 10

    async def interrupt_twice(run: Run) -> None:
        await asyncio.sleep(1.0)
        run.stop()
        await asyncio.sleep(0.1)
        run.abort()

    bench = Bench(closed(2, num_requests=1000), answer=lambda n: chat_stream(0.3, 60.0))
    end = bench.execute(during=interrupt_twice)
    assert end.interrupted
    assert {record.outcome for record in bench.sink.records} == {Outcome.CANCELLED}
    assert all(record.event_ns for record in bench.sink.records), "what had arrived is kept"


def test_an_interrupt_while_waiting_for_a_due_instant_ends_the_run() -> None:
    """A replay with an hour of silence ahead stops when asked, not when the hour is over."""

    async def interrupt(run: Run) -> None:
        await asyncio.sleep(5.0)
        run.stop()

    turns = [
        Conversation(turns=(Turn(prompt=Text(text=str(offset)), offset_ns=offset * 10**9),)) for offset in (0, 3600)
    ]
    bench = Bench(Load(mode=LoadMode.REPLAY, speed=1.0), conversations=iter(turns))
    end = bench.execute(during=interrupt)
    assert end.requests == 1
    assert end.interrupted


def test_a_failing_server_is_data() -> None:
    """Every request fails: the run ends by itself with one failed record each."""
    bench = Bench(closed(2, num_requests=10), answer=lambda n: Script([], kind=FailureKind.CONNECT))
    end = bench.execute()
    assert [record.outcome for record in bench.sink.records] == [Outcome.FAILED] * 10
    assert end.ended_by == "requests"


def test_a_server_that_refuses_everything_is_not_asked_a_thousand_times() -> None:
    """When the first answers are all 401, the run stops after those, says so, and keeps their records."""
    bench = Bench(closed(2, num_requests=1000), answer=lambda n: Script([(0.01, b'{"error": "no"}')], status=401))
    end = bench.execute()
    assert end.ended_by == "refused"
    assert not end.interrupted
    assert 20 <= len(bench.sink.records) < 60
    assert {record.failure.kind for record in bench.sink.records if record.failure} == {FailureKind.HTTP_4XX}

    bench = Bench(closed(2, num_requests=100), answer=lambda n: chat_stream(0.01) if n == 0 else Script([], status=401))
    assert bench.execute().ended_by == "requests", "one answer is enough to go on"


def test_a_server_that_is_gone_is_not_hammered_and_given_up() -> None:
    """Connections are refused from the tenth request on: each slot tries ten times a second, and after 30 s no more."""
    bench = Bench(
        closed(2, duration_s=600.0),
        answer=lambda n: chat_stream(0.01) if n < 10 else Script([], kind=FailureKind.CONNECT),
    )
    end = bench.execute()
    assert end.ended_by == "unreachable"
    assert not end.interrupted
    sent = [at_ns for at_ns, _ in bench.transport.sent]
    assert 29.9e9 <= sent[-1] - sent[10] <= 30.3e9
    assert 2 * 280 <= len(sent) <= 2 * 320


def test_a_server_that_comes_back_is_measured_on() -> None:
    """20 s without a connection, then answers again: the run goes on to its end."""
    clock = FakeClock()

    def answer(n: int) -> Script:
        return Script([], kind=FailureKind.CONNECT) if 5e9 < clock.now_ns() < 25e9 else chat_stream(0.5)

    end = Bench(closed(2, duration_s=60.0), answer=answer).execute()
    assert end.ended_by == "duration"


def test_a_full_disk_ends_the_run_loudly_and_closes_the_transport() -> None:
    """The sink's StoreError comes out of the run; no connection stays open."""
    bench = Bench(closed(2, num_requests=100), sink=MemorySink(fail_after=5))
    with pytest.raises(StoreError, match="disk is full"):
        bench.execute()
    assert bench.transport.closed
    assert bench.transport.in_flight == 0


def test_a_plan_with_no_requests_ends() -> None:
    """Nothing to send is a run of no requests, not a hang."""
    end = Bench(closed(4), conversations=iter([])).execute()
    assert end.requests == 0


@pytest.mark.parametrize("place", ["prepare", "decode", "record"])
def test_a_fault_of_our_own_ends_the_run_loudly_and_never_hangs_it(place: str) -> None:
    """An exception where nobody expects one: the run ends with it, and no connection stays open."""

    class Faulty(ScriptedTransport):
        def prepare(self, body: bytes, request_id: str) -> bytes:
            if place == "prepare" and request_id == "r-3":
                raise ZeroDivisionError
            return body

    class FaultySink(MemorySink):
        def put(self, record: Any) -> None:
            if place == "record" and record.seq == 3:
                raise ZeroDivisionError
            super().put(record)

    def answer(n: int) -> Script:
        if place == "decode" and n == 3:
            return Script([(0.1, None)])  # type: ignore[list-item]  # no decoder expects that
        return chat_stream(0.1, 0.2)

    bench = Bench(closed(2, num_requests=20), answer=answer, sink=FaultySink())
    bench.transport = Faulty(bench.clock, answer)
    with pytest.raises((ZeroDivisionError, TypeError)):
        bench.execute()
    assert bench.transport.closed
    assert bench.transport.in_flight == 0
