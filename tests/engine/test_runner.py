"""A run in virtual time: when requests leave, which count, and how it ends."""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from loadgen.core.errors import StoreError
from loadgen.core.record import FailureKind, Outcome
from loadgen.core.request import Conversation, Endpoint, Messages, Phase, RequestTemplate, Text, Turn
from loadgen.core.run import Load, LoadMode
from loadgen.core.schedule.arrivals import constant_offsets
from loadgen.core.schedule.plan import plan
from loadgen.engine.ports import ServerProbe
from loadgen.engine.runner import Run, RunEnd, RunSettings
from tests.fakes.scripted_transport import MemorySink, Script, ScriptedTransport, chat_stream
from tests.fakes.virtual_time import FakeClock, VirtualTimeLoop, run_virtual

TEMPLATE = RequestTemplate(endpoint=Endpoint.CHAT, model="m")
LEAD_NS = 20_000_000


def singles(count: int | None = None) -> Iterator[Conversation]:
    """Conversations of one turn each."""
    numbers = itertools.count() if count is None else iter(range(count))
    return (Conversation(turns=(Turn(prompt=Text(text=f"question {n}")),)) for n in numbers)


class Bench:
    """A run with its fakes, and what came of it."""

    def __init__(
        self,
        load: Load,
        *,
        answer: Callable[[int], Script] = lambda n: chat_stream(0.1, 0.2),
        conversations: Iterator[Conversation] | None = None,
        sink: MemorySink | None = None,
        offsets: Iterator[int] | None = None,
        probe: ServerProbe | None = None,
        **settings: Any,
    ) -> None:
        self.clock = FakeClock()
        self.transport = ScriptedTransport(self.clock, answer)
        self.sink = sink or MemorySink()
        self.probe = probe
        if load.mode is LoadMode.RATE and offsets is None:
            assert load.request_rate_rps is not None
            offsets = constant_offsets(load.request_rate_rps)
        self.planned = plan(
            conversations if conversations is not None else singles(),
            TEMPLATE,
            request_id_prefix="r",
            offsets=offsets,
            replay=load.mode is LoadMode.REPLAY,
            num_requests=load.num_requests,
            warmup_requests=settings.get("warmup_requests", 0),
        )
        self.settings = RunSettings(load=load, endpoint=Endpoint.CHAT, template=TEMPLATE, **settings)

    def start(self) -> Run:
        self.run = Run(
            self.planned,
            self.settings,
            clock=self.clock,
            transport=self.transport,
            sink=self.sink,
            probe=self.probe,
        )
        return self.run

    def execute(self, *, during: Callable[[Run], Any] | None = None) -> RunEnd:
        async def work() -> RunEnd:
            run = self.start()
            meddling = asyncio.ensure_future(during(run)) if during is not None else None
            try:
                return await run.execute()
            finally:
                if meddling is not None:
                    meddling.cancel()

        return run_virtual(work())


def closed(concurrency: int, **more: Any) -> Load:
    return Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency, **more)


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


def test_a_replay_follows_the_times_of_its_turns() -> None:
    """Rows at 0, 2 and 2 s leave at 0, 2 and 2 s."""
    turns = [Conversation(turns=(Turn(prompt=Text(text="q"), offset_ns=at * 10**9),)) for at in (0, 2, 2)]
    bench = Bench(Load(mode=LoadMode.REPLAY, speed=1.0), conversations=iter(turns))
    bench.execute()
    assert [at_ns - LEAD_NS for at_ns, _ in bench.transport.sent] == [0, 2_000_000_000, 2_000_000_000]


def test_a_conversation_waits_for_each_answer_and_carries_it_on() -> None:
    """The second turn leaves a think time after the first answer and holds that answer as the assistant's message."""
    conversation = Conversation(
        session_id="s",
        turns=(
            Turn(prompt=Text(text="one")),
            Turn(prompt=Text(text="two"), continues_answers=True, think_s=2.0),
        ),
    )
    bench = Bench(closed(1), conversations=iter([conversation]), answer=lambda n: chat_stream(0.5, 1.0, text="answer "))
    bench.execute()
    (first_ns, _), (second_ns, body) = bench.transport.sent
    assert second_ns - first_ns == pytest.approx(3e9, abs=60e6)
    assert b'"role":"assistant","content":"answer answer "' in body.replace(b": ", b":").replace(b", ", b",")
    assert [(record.session_id, record.turn) for record in bench.sink.records] == [("s", 0), ("s", 1)]


def test_turns_after_a_lost_answer_are_dropped_not_forgotten() -> None:
    """When the answer that a turn continues from never came, that turn is a dropped record."""
    conversation = Conversation(
        turns=(
            Turn(prompt=Messages(messages=({"role": "user", "content": "one"},))),
            Turn(prompt=Text(text="two"), continues_answers=True),
        )
    )
    bench = Bench(closed(1), conversations=iter([conversation]), answer=lambda n: Script([], kind=FailureKind.CONNECT))
    end = bench.execute()
    assert [record.outcome for record in bench.sink.records] == [Outcome.FAILED, Outcome.DROPPED]
    assert end.requests == 2


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


def test_turns_that_fell_due_behind_a_slow_answer_are_dropped_at_the_end() -> None:
    """A replayed session whose first answer outlasts the run: its second turn was due inside, its third was not."""
    turns = tuple(Turn(prompt=Text(text=str(at)), offset_ns=at * 10**9) for at in (0, 2, 9))
    session = Conversation(turns=turns, session_id="s")
    load = Load(mode=LoadMode.REPLAY, speed=1.0, duration_s=4.0)
    for grace_s, first in ((20.0, Outcome.COMPLETED), (1.0, Outcome.CANCELLED)):
        bench = Bench(load, conversations=iter([session]), answer=lambda n: chat_stream(0.1, 8.0), grace_s=grace_s)
        bench.execute()
        assert [(record.turn, record.outcome) for record in sorted(bench.sink.records, key=lambda r: r.seq)] == [
            (0, first),
            (1, Outcome.DROPPED),
        ]


def test_no_turn_is_sent_after_the_end() -> None:
    """Conversations of ten turns of 0.3 s without think time, for 1 s: the next turn after the end is not sent."""
    talk = [Conversation(turns=tuple(Turn(prompt=Text(text=str(n))) for n in range(10))) for _ in range(2)]
    bench = Bench(closed(2, duration_s=1.0), conversations=iter(talk), answer=lambda n: chat_stream(0.1, 0.3))
    end = bench.execute()
    assert end.window is not None
    assert max(at_ns for at_ns, _ in bench.transport.sent) < end.window.end_ns
    assert len(bench.sink.records) == len(bench.transport.sent) == 8


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


def test_warm_up_keeps_to_the_cap() -> None:
    """A hundred warm-up requests at a rate, behind a cap of 8: never more than 8 in flight."""
    load = Load(mode=LoadMode.RATE, request_rate_rps=1000.0, num_requests=20, max_concurrency=8)
    bench = Bench(load, answer=lambda n: chat_stream(0.5), warmup_requests=100)
    bench.execute()
    assert bench.transport.peak == 8
    assert len(bench.sink.records) == 120


class WatchingProbe:
    """Notes when it is called, in ns of the run's axis."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.before_ns = self.after_ns = self.beats = 0
        self.cancelled = False
        self._over = asyncio.Event()

    async def before(self) -> None:
        await asyncio.sleep(0.5)
        self.before_ns = self.clock.now_ns()

    async def during(self) -> None:
        try:
            while not self._over.is_set():
                await asyncio.sleep(0.1)
                self.beats += 1
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def after(self) -> None:
        self.after_ns = self.clock.now_ns()
        self._over.set()


def test_the_server_is_read_before_during_and_after_all_requests() -> None:
    """No request leaves before the first reading is done, and the last begins when the last request has ended."""
    probe = WatchingProbe()
    bench = Bench(closed(2, num_requests=10), probe=probe)
    bench.execute()
    records = bench.sink.records
    assert probe.before_ns < min(record.sent_ns or 0 for record in records)
    assert probe.after_ns >= max(record.closed_ns or 0 for record in records)
    assert probe.beats >= 9
    assert not probe.cancelled


def test_a_run_that_fails_does_not_leave_its_probe_behind() -> None:
    """The disk is full: the fault is raised, and nothing reads on."""
    probe = WatchingProbe()
    with pytest.raises(StoreError):
        Bench(closed(2, num_requests=10), probe=probe, sink=MemorySink(fail_after=3)).execute()
    assert probe.cancelled
    assert probe.after_ns == 0
