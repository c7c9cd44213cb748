"""A run of several workers is the run that one process would have made; in virtual time."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from loadgen.core.errors import DataError, InternalError, StoreError
from loadgen.core.record import FailureKind, Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, TimingSource, Window
from loadgen.engine.live import LiveCounts
from loadgen.engine.outlook import Outlook
from loadgen.engine.runner import RunEnd
from loadgen.wiring.workers.leading import LOST, Leading
from loadgen.wiring.workers.messages import Began, Ended, Failed, Measuring, Progress, Ready, Stop
from tests.fakes.scripted_transport import Script, chat_stream
from tests.wiring.workers.virtual_team import START_NS, VirtualTeam, at_rate, closed

S = 1_000_000_000


def peak(records: Sequence[RequestRecord]) -> int:
    """The most requests in flight at once."""
    edges = [(record.sent_ns, 1) for record in records] + [(record.closed_ns, -1) for record in records]
    level = most = 0
    for _, step in sorted((at, step) for at, step in edges if at is not None):
        level += step
        most = max(most, level)
    return most


def test_an_open_loop_sends_what_one_process_would_have_sent() -> None:
    """The same requests at the same instants, each once, whichever worker has it; lateness is none."""
    alone, team = (VirtualTeam(at_rate(40.0, num_requests=60), workers=n, warmup_requests=5) for n in (1, 3))
    one, three = alone.execute(), team.execute()
    assert [(each.seq, each.request_id, each.phase, each.due_ns, each.sent_ns) for each in team.records] == [
        (each.seq, each.request_id, each.phase, each.due_ns, each.sent_ns) for each in alone.records
    ]
    assert all(record.sent_ns == record.due_ns for record in team.records)
    assert [len(member.sink.records) for member in team.members] == [22, 22, 21]
    assert (three.requests, three.ended_by, three.window) == (one.requests, "requests", None)
    assert team.leading.live.completed == 65
    assert team.leading.live.measured_ended == team.leading.live.measured_planned == 60


def test_a_closed_loop_has_its_concurrency_and_sends_every_request_once() -> None:
    """Five slots of two workers are three and two; connections are opened for each of them, and a cap splits alike."""
    team = VirtualTeam(closed(5, num_requests=60), warmup_requests=5)
    end = team.execute()
    assert [record.seq for record in team.records] == list(range(65))
    assert [record.phase for record in team.records] == [Phase.WARMUP] * 5 + [Phase.MEASURE] * 60
    assert [member.transport.peak for member in team.members] == [3, 2]
    assert [member.transport.opened for member in team.members] == [3, 2]
    assert peak(team.records) == 5
    assert end.requests == 65
    capped = VirtualTeam(at_rate(40.0, num_requests=40, max_concurrency=3))
    capped.execute()
    assert [member.transport.peak for member in capped.members] == [2, 1]
    assert {record.outcome for record in capped.records} == {Outcome.COMPLETED}


def test_slots_of_all_workers_rise_together() -> None:
    """A ramp of four slots over 1 s: a quarter of a second from one to the next, whoever has it."""
    team = VirtualTeam(closed(4, num_requests=40), answer=lambda n: chat_stream(2.0), ramp_up_s=1.0)
    team.execute()
    sent = sorted(record.sent_ns or 0 for record in team.records)
    assert [at - START_NS for at in sent[:4]] == [0, S // 4, S // 2, 3 * S // 4]


def test_a_duration_begins_with_the_first_measured_request_of_any_worker() -> None:
    """One worker is through with its warm-up a second before the other: both measure from then, and end together."""

    def answer(n: int) -> Script:
        return chat_stream(1.0) if n == 0 else chat_stream(0.23)

    team = VirtualTeam(closed(2, duration_s=3.0), warmup_requests=4, answer=lambda n: chat_stream(0.13))

    async def uneven(team: VirtualTeam) -> None:
        team.members[1].transport.answer = answer

    end = team.execute(during=uneven)
    measured = [record for record in team.records if record.phase is Phase.MEASURE]
    began_ns = min(record.sent_ns or 0 for record in measured)
    assert end.ended_by == "duration"
    assert not end.interrupted
    assert end.window is not None
    assert end.window.start_ns == began_ns == team.leading.live.measuring_since_ns
    assert [member.run.live.measuring_since_ns for member in team.members] == [began_ns] * 2
    assert end.window.end_ns - end.window.start_ns == pytest.approx(3 * S, abs=1000)
    assert max(record.sent_ns or 0 for record in team.records) < end.window.end_ns
    assert max(record.sent_ns or 0 for record in team.records) > end.window.end_ns - S // 2


def test_a_worker_that_began_itself_hears_of_one_that_began_before() -> None:
    """A millisecond apart, which is less than a message takes: both end by the earlier one."""
    team = VirtualTeam(closed(2, duration_s=2.0), warmup_requests=2, answer=lambda n: chat_stream(0.13))

    async def uneven(team: VirtualTeam) -> None:
        team.members[0].transport.answer = lambda n: chat_stream(0.131)

    team.execute(during=uneven)
    first = [
        min(each.sent_ns or 0 for each in member.sink.records if each.phase is Phase.MEASURE) for member in team.members
    ]
    assert first[0] > first[1]
    assert [member.run.live.measuring_since_ns for member in team.members] == [first[1]] * 2


def test_an_open_loop_of_a_duration_has_the_arrivals_of_one_process() -> None:
    """What is due within it, and nothing else; beginning and end are those of the whole, not of a share."""
    alone, team = (VirtualTeam(at_rate(30.0, duration_s=2.0), workers=n, warmup_requests=7) for n in (1, 2))
    one, two = alone.execute(), team.execute()
    assert [record.seq for record in team.records] == [record.seq for record in alone.records]
    assert len(team.records) == 67
    assert two.window is not None
    assert one.window is not None
    assert two.window.start_ns == one.window.start_ns
    assert two.window.end_ns == pytest.approx(one.window.end_ns, abs=1000)


def test_where_one_worker_has_nothing_left_the_whole_load_ends() -> None:
    """Its requests were short: up to there the load was whole, and the window does not reach beyond."""
    team = VirtualTeam(closed(2, num_requests=80))

    async def uneven(team: VirtualTeam) -> None:
        team.members[1].transport.answer = lambda n: chat_stream(0.4)

    end = team.execute(during=uneven)
    last = [max(record.closed_ns or 0 for record in member.sink.records) for member in team.members]
    assert end.exhausted_ns == last[0] < last[1]
    assert end.requests == 80


def test_a_server_that_refuses_everything_is_not_asked_a_thousand_times() -> None:
    """By both together; an answer that one of them got is enough to go on."""
    refuse = Script([(0.05, b'{"error": "no"}')], status=401)
    team = VirtualTeam(closed(4, num_requests=1000), answer=lambda n: refuse)
    end = team.execute()
    assert end.ended_by == "refused"
    assert not end.interrupted
    assert 20 <= len(team.records) < 60
    assert {record.failure.kind for record in team.records if record.failure} == {FailureKind.HTTP_4XX}

    async def one_answer(team: VirtualTeam) -> None:
        team.members[1].transport.answer = lambda n: chat_stream(0.01) if n == 0 else refuse

    assert VirtualTeam(closed(4, num_requests=100), answer=lambda n: refuse).execute(during=one_answer).ended_by == (
        "requests"
    )


def test_a_server_that_is_gone_is_given_up() -> None:
    """After half a minute, by both together."""
    team = VirtualTeam(
        closed(2, duration_s=600.0),
        answer=lambda n: chat_stream(0.01) if n < 10 else Script([], kind=FailureKind.CONNECT),
    )
    end = team.execute()
    assert end.ended_by == "unreachable"
    assert 29 * S <= max(record.sent_ns or 0 for record in team.records) <= 31.5 * S


def test_a_stop_ends_all_in_order() -> None:
    """Answers on their way arrive; the end is that of an interrupt."""

    async def interrupt(team: VirtualTeam) -> None:
        await asyncio.sleep(2.0)
        team.tell(team.leading.stop("interrupt"))
        assert team.leading.stop("unreachable") is None, "the first reason counts"

    team = VirtualTeam(closed(4, num_requests=1000))
    end = team.execute(during=interrupt)
    assert end.interrupted
    assert end.ended_by == "interrupt"
    assert {record.outcome for record in team.records} == {Outcome.COMPLETED}
    assert end.requests == len(team.records) < 100
    assert team.leading.live.stopping == "interrupt"


def test_what_a_lost_worker_had_recorded_counts() -> None:
    """The others end in order; what it had in flight has no record and is missing from the requests of the run."""

    async def lose(team: VirtualTeam) -> None:
        await asyncio.sleep(2.1)
        team.lose(1)

    team = VirtualTeam(closed(4, num_requests=1000))
    end = team.execute(during=lose)
    assert end.ended_by == LOST
    assert not end.interrupted
    assert (end.client.workers, end.client.workers_lost) == (2, 1)
    left = len(team.members[0].sink.records)
    assert end.requests >= left + len(team.members[1].sink.records)
    assert max(record.closed_ns or 0 for record in team.members[0].sink.records) < 3 * S


def ended(**changes: object) -> Ended:
    """What a worker of five requests says last."""
    client = ClientFacts(timing_source=TimingSource.KERNEL, cpu_ratio=0.1, loop_stall_p99_s=0.001)
    end = RunEnd(ended_by="requests", interrupted=False, requests=5, window=None, client=client, late_preparations=1)
    last = Progress(counts=LiveCounts(completed=5), outlook=Outlook())
    return Ended(end=replace(end, **changes), last=last)  # type: ignore[arg-type]


def test_health_is_that_of_the_worst() -> None:
    """A mean would hide a worker that could not keep up; stamps are as good as the least good ones."""
    data = Ready(requests=1)
    leading = Leading(closed(2), workers=2, warmup_requests=0, data=data)
    worse = ClientFacts(timing_source=TimingSource.USER, cpu_ratio=0.99, loop_stall_max_s=0.5)
    leading.take(0, ended())
    leading.take(1, ended(client=worse))
    end = leading.result({})
    assert end.client == ClientFacts(
        timing_source=TimingSource.USER, workers=2, cpu_ratio=0.99, loop_stall_p99_s=0.001, loop_stall_max_s=0.5
    )
    assert (end.requests, end.late_preparations) == (10, 2)


def test_the_measured_phase_moves_to_the_earliest_instant_only() -> None:
    """A later one is nothing new; an earlier one, whose message took longer, is told to all."""
    leading = Leading(closed(2), workers=2, warmup_requests=0, data=Ready(requests=1))
    assert leading.take(0, Began(at_ns=50)) == Measuring(at_ns=50)
    assert leading.take(1, Began(at_ns=60)) is None
    assert leading.take(1, Began(at_ns=40)) == Measuring(at_ns=40)
    assert leading.live.measuring_since_ns == 40


def test_a_window_ends_where_the_first_worker_stopped() -> None:
    """Each got word of an interrupt at its own moment. In a closed loop a worker that had run out leaves none."""
    began, later = Window(start_ns=50, end_ns=800, kind="duration"), Window(start_ns=50, end_ns=900, kind="duration")
    for load, last, expected in (
        (closed(2, duration_s=1.0), later, began),
        (closed(2, duration_s=1.0), None, None),
        (at_rate(2.0, duration_s=1.0), None, began),
    ):
        leading = Leading(load, workers=2, warmup_requests=0, data=Ready(requests=1))
        leading.take(0, Began(at_ns=50))
        leading.take(0, ended(window=began))
        leading.take(1, ended(window=last))
        assert leading.result({}).window == expected


def test_nothing_is_given_up_for_a_worker_that_has_not_told() -> None:
    """It may have got an answer."""
    leading = Leading(closed(2), workers=2, warmup_requests=0, data=Ready(requests=1))
    refused = Progress(counts=LiveCounts(), outlook=Outlook(refused=20))
    assert leading.take(0, refused) is None
    assert leading.take(1, Progress(counts=LiveCounts(), outlook=Outlook())) == Stop(reason="refused")
    assert leading.take(0, refused) is None, "it is told once"


def test_why_a_run_cannot_be_done() -> None:
    """What a worker says it failed with, data that is not the leader's, and one that is gone before it was ready."""
    data = Ready(requests=3, sha256="a")
    leading = Leading(closed(2), workers=2, warmup_requests=0, data=data)
    assert leading.fault is None
    leading.take(0, Failed(kind="StoreError", message="the disk is full"))
    assert isinstance(leading.fault, StoreError)
    assert str(leading.fault) == "the disk is full"

    leading = Leading(closed(2), workers=2, warmup_requests=0, data=data)
    leading.take(0, data)
    assert not leading.ready
    leading.take(1, Ready(requests=3, sha256="b"))
    assert isinstance(leading.fault, DataError)

    leading = Leading(closed(2), workers=2, warmup_requests=0, data=data)
    assert leading.lose(0) == Stop(reason=LOST)
    assert isinstance(leading.fault, InternalError)
