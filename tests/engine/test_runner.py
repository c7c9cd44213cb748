"""A run in virtual time: when requests leave, and which count."""

import asyncio
import itertools
from collections.abc import Callable

import pytest

from loadgen.core.record import FailureKind, Outcome
from loadgen.core.request import Conversation, Phase, Text, Turn
from loadgen.core.run import Load, LoadMode
from tests.engine.bench import LEAD_NS, Bench, closed
from tests.fakes.scripted_transport import Script, ScriptedTransport, chat_stream
from tests.fakes.virtual_time import VirtualTimeLoop


def test_a_closed_loop_keeps_its_concurrency_and_sends_every_request_once() -> None:
    """Four slots, twenty requests: the peak is four, connections are opened ahead, each request has one record."""
    bench = Bench(closed(4, num_requests=20))
    end = bench.execute()
    assert bench.transport.peak == 4
    assert bench.transport.opened == 4
    assert sorted(record.seq for record in bench.sink.records) == list(range(20))
    assert len({body for _, body in bench.transport.sent}) == 20
    assert end.requests == 20
    assert not end.interrupted
    assert bench.transport.closed


def test_an_open_loop_sends_at_its_due_instants_whatever_the_server_does() -> None:
    """At 10 a second with answers of 5 s, requests leave every 100 ms and pile up in flight."""
    bench = Bench(
        Load(mode=LoadMode.RATE, request_rate_rps=10.0, num_requests=30), answer=lambda n: chat_stream(1.0, 5.0)
    )
    bench.execute()
    sent = [at_ns for at_ns, _ in bench.transport.sent]
    assert sent == [LEAD_NS + round(n * 1e8) for n in range(30)]
    assert bench.transport.peak == 30
    assert all(record.due_ns == record.sent_ns for record in bench.sink.records)


def test_the_wait_for_the_cap_is_kept_apart_from_latency() -> None:
    """5 a second with a cap of one and answers of 0.4 s: request n waits n x 0.2 s, and its TTFT stays 0.4 s."""
    bench = Bench(
        Load(mode=LoadMode.RATE, request_rate_rps=5.0, num_requests=6, max_concurrency=1),
        answer=lambda n: chat_stream(0.4),
    )
    bench.execute()
    records = sorted(bench.sink.records, key=lambda record: record.seq)
    assert bench.transport.peak == 1
    for n, record in enumerate(records):
        assert record.sent_ns is not None
        assert record.due_ns is not None
        assert record.first_ns is not None
        assert record.cap_wait_ns == pytest.approx(n * 0.2e9, abs=1000)
        assert record.sent_ns - record.due_ns == pytest.approx(n * 0.2e9, abs=1000)
        assert record.first_ns - record.sent_ns == pytest.approx(0.4e9, abs=1000)


def test_warm_up_hands_its_slots_over_without_draining() -> None:
    """With 8 warm-up requests on 4 slots of uneven answers, the number in flight never falls before the last send."""
    bench = Bench(closed(4, num_requests=16), answer=lambda n: chat_stream(0.1 + 0.03 * (n % 3)), warmup_requests=8)
    bench.execute()
    phases = [record.phase for record in sorted(bench.sink.records, key=lambda record: record.seq)]
    assert phases == [Phase.WARMUP] * 8 + [Phase.MEASURE] * 16
    live = bench.run.live
    assert (live.warmup_ended, live.warmup_planned, live.measured_ended, live.measured_planned) == (8, 8, 16, 16)
    edges = [(record.sent_ns, 1) for record in bench.sink.records] + [
        (record.closed_ns, -1) for record in bench.sink.records
    ]
    last_sent = max(record.sent_ns or 0 for record in bench.sink.records)
    level, levels = 0, []
    for _, steps in itertools.groupby(
        sorted((at, step) for at, step in edges if at is not None and at < last_sent), key=lambda edge: edge[0]
    ):
        level += sum(step for _, step in steps)
        levels.append(level)
    assert set(levels) == {4}


def test_warm_up_keeps_to_the_cap() -> None:
    """A hundred warm-up requests at a rate, behind a cap of 8: never more than 8 in flight."""
    load = Load(mode=LoadMode.RATE, request_rate_rps=1000.0, num_requests=20, max_concurrency=8)
    bench = Bench(load, answer=lambda n: chat_stream(0.5), warmup_requests=100)
    bench.execute()
    assert bench.transport.peak == 8
    assert len(bench.sink.records) == 120


def test_a_ramp_spreads_the_first_sends_and_counts_them_as_warm_up() -> None:
    """Slots of a 1 s ramp start a quarter of a second apart; what is sent meanwhile is not measured."""
    bench = Bench(closed(4, num_requests=40), answer=lambda n: chat_stream(0.3), ramp_up_s=1.0)
    bench.execute()
    assert [at_ns for at_ns, _ in bench.transport.sent][:2] == [LEAD_NS, LEAD_NS + 250_000_000]
    for record in bench.sink.records:
        assert record.sent_ns is not None
        assert (record.phase is Phase.WARMUP) == (record.sent_ns < LEAD_NS + 1_000_000_000)
    measured = sum(record.phase is Phase.MEASURE for record in bench.sink.records)
    assert bench.run.live.measured_ended == bench.run.live.measured_planned == measured < 40


def test_a_replay_follows_the_times_of_its_turns() -> None:
    """Rows at 0, 2 and 2 s leave at 0, 2 and 2 s."""
    turns = [Conversation(turns=(Turn(prompt=Text(text="q"), offset_ns=at * 10**9),)) for at in (0, 2, 2)]
    bench = Bench(Load(mode=LoadMode.REPLAY, speed=1.0), conversations=iter(turns))
    bench.execute()
    assert [at_ns - LEAD_NS for at_ns, _ in bench.transport.sent] == [0, 2_000_000_000, 2_000_000_000]


def test_the_window_begins_with_the_first_arrival_not_with_the_preparation() -> None:
    """Connections take 5 s to open: the 2 s that were asked for are measured in full after that."""

    class SlowlyOpening(ScriptedTransport):
        async def open(self, connections: int) -> None:
            await asyncio.sleep(5.0)

    bench = Bench(Load(mode=LoadMode.RATE, request_rate_rps=10.0, duration_s=2.0))
    bench.transport = SlowlyOpening(bench.clock, bench.transport.answer)
    end = bench.execute()
    assert end.window is not None
    assert end.window.start_ns == 5_000_000_000 + LEAD_NS
    assert end.window.end_ns - end.window.start_ns == 2_000_000_000
    assert len(bench.sink.records) == 20


def late_by(delay_s: float) -> Callable[[int], Script]:
    """Answers at once, after a client that was away for so long."""

    def answer(n: int) -> Script:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.lose(delay_s)
        return chat_stream(0.01)

    return answer


def test_arrivals_that_a_slow_client_never_came_to_are_dropped_not_forgotten() -> None:
    """10 a second for 1 s by a client that needs 0.4 s a request: what fell due and was not sent has a record."""
    bench = Bench(Load(mode=LoadMode.RATE, request_rate_rps=10.0, duration_s=1.0))
    bench.transport.answer = late_by(0.4)
    end = bench.execute()
    assert end.ended_by == "duration"
    assert [record.seq for record in sorted(bench.sink.records, key=lambda record: record.seq)] == list(range(10))
    dropped = [record for record in bench.sink.records if record.outcome is Outcome.DROPPED]
    assert 4 <= len(dropped) == 10 - len(bench.transport.sent)
    assert all(record.due_ns is not None and record.sent_ns is None for record in dropped)


def test_a_stall_is_followed_by_late_sends_not_by_lost_ones() -> None:
    """45 a second, and the client is away for 2 s in the middle: every request is sent, the overdue ones at once."""
    bench = Bench(Load(mode=LoadMode.RATE, request_rate_rps=45.0, num_requests=180))

    def answer(n: int) -> Script:
        return late_by(2.0)(n) if n == 45 else chat_stream(0.01)

    bench.transport.answer = answer
    bench.execute()
    lags = [(record.sent_ns or 0) - (record.due_ns or 0) for record in bench.sink.records]
    assert {record.outcome for record in bench.sink.records} == {Outcome.COMPLETED}
    assert len(lags) == 180
    assert sum(lag > 0 for lag in lags) == pytest.approx(90, abs=2)
    assert max(lags) == pytest.approx(2e9, rel=0.02)
    assert min(lags) == 0


def test_what_a_broken_answer_had_said_is_kept() -> None:
    """Four events and a reset: times, text and the reason stay together in the record."""
    stream = chat_stream(0.1, 0.2, 0.3, 0.4, text="tok ").pieces[:4]
    bench = Bench(closed(1, num_requests=1), answer=lambda n: Script(stream, kind=FailureKind.READ), keep_text=True)
    bench.execute()
    (record,) = bench.sink.records
    assert record.outcome is Outcome.FAILED
    assert record.failure is not None
    assert record.failure.kind is FailureKind.READ
    assert len(record.event_ns) == 4
    assert record.text == "tok tok tok tok "
