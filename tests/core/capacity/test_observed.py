"""From records to what a probe showed."""

from dataclasses import replace

import pytest

from loadgen.core.analysis.analyse import analyse
from loadgen.core.capacity.observed import run_of
from loadgen.core.capacity.probe import Run
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, Load, LoadMode, RunManifest, Target, TimingSource

SLO = {"ttft_s": 0.1, "tpot_s": 0.02}
MS = 1_000_000


def record(seq: int, *, ttft_ms: int = 50, input_tokens: int = 100, gap_ms: int = 10) -> RequestRecord:
    """A completed request of eleven tokens, sent every 50 ms."""
    sent = seq * 50 * MS
    events = tuple(sent + (ttft_ms + gap_ms * place) * MS for place in range(11))
    return RequestRecord(
        seq=seq,
        request_id=f"r-{seq}",
        phase=Phase.MEASURE,
        outcome=Outcome.COMPLETED,
        due_ns=sent,
        sent_ns=sent,
        first_ns=events[0],
        last_ns=events[-1],
        closed_ns=events[-1] + MS,
        event_ns=events,
        streamed=True,
        input_tokens=input_tokens,
        output_tokens=11,
        output_tokens_from=TokenSource.SERVER,
    )


def failed(seq: int) -> RequestRecord:
    """A request that the server broke off."""
    whole = record(seq)
    return replace(
        whole,
        outcome=Outcome.FAILED,
        failure=Failure(kind=FailureKind.READ),
        first_ns=None,
        last_ns=None,
        event_ns=(),
        output_tokens=None,
    )


def observed(records: list[RequestRecord], *, target: float = 0.9, **manifest: object) -> Run:
    """The run of these records."""
    known = RunManifest(
        run_id="r",
        started_at="2026-01-01T00:00:00.000+00:00",
        origin_unix_ns=0,
        target=Target(url="http://x", endpoint="chat", model="m"),
        load=Load(mode=LoadMode.RATE, request_rate_rps=20, burstiness=None),
        slo=SLO,
        planned=len(records),
        interrupted=False,
        ended_by="requests",
    )
    known = replace(known, **manifest)  # type: ignore[arg-type]
    summary = analyse(lambda: records, known).summary
    run = run_of(records, known, summary, target_ratio=target)
    assert summary.slo is not None
    assert (run.evidence.good, run.evidence.due) == (summary.slo.good, summary.slo.due)
    return run


def test_good_runs_have_no_shortfall() -> None:
    """Every request met both objectives: the counts are those of the summary, and nothing speaks against the run."""
    run = observed([record(seq) for seq in range(100)])
    assert (run.evidence.good, run.evidence.due, run.shortfall) == (100, 100, None)
    assert (run.invalid, run.overloaded, run.unsettled, run.cut_short) == (None, None, None, None)


def test_a_shortfall_says_what_was_missed_by_how_much_and_by_which_requests() -> None:
    """Ten late first tokens with long prompts in the last third, and two failures."""
    late = {seq: record(seq, ttft_ms=150, input_tokens=900) for seq in range(80, 90)}
    records = [late.get(seq) or (failed(seq) if seq in (3, 4) else record(seq)) for seq in range(100)]
    run = observed(list(reversed(records)), target=0.95)
    short = run.shortfall
    assert short is not None
    assert (short.bad, short.lost, short.by_third) == (12, 2, (2, 0, 10))
    assert short.seqs == (3, 4, 80, 81, 82)
    assert (short.input_tokens_bad_p50, short.input_tokens_good_p50) == (900, 100)
    ttft, tpot = short.misses
    assert (ttft.metric, ttft.limit_s, ttft.over, ttft.without_value) == ("ttft_s", 0.1, 10, 0)
    assert ttft.needed_s == pytest.approx(0.15)
    assert tpot.over == 0
    assert tpot.needed_s == pytest.approx(0.01)


def test_no_limit_would_do_where_too_many_fail() -> None:
    """With a tenth lost no limit holds for 95 %."""
    short = observed([failed(seq) if seq % 10 == 0 else record(seq) for seq in range(100)], target=0.95).shortfall
    assert short is not None
    assert [miss.needed_s for miss in short.misses] == [None, None]


def test_a_completed_request_without_a_value_is_not_good() -> None:
    """One-token answers have no TPOT."""
    records = [record(seq) for seq in range(50)]
    records[7] = replace(records[7], event_ns=records[7].event_ns[:1], last_ns=records[7].first_ns, output_tokens=1)
    short = observed(records).shortfall
    assert short is not None
    assert (short.bad, short.lost) == (1, 0)
    assert [miss.without_value for miss in short.misses] == [0, 1]


def test_a_window_of_few_answers_has_not_settled() -> None:
    """Answers that take more than a fifth of the window say nothing of where the load leads."""
    run = observed([record(seq, gap_ms=10) for seq in range(20)])
    assert run.unsettled is None
    slow = observed([record(seq, gap_ms=15) for seq in range(20)])
    assert slow.unsettled is not None
    assert "is shorter than 5 requests" in slow.unsettled


def test_how_a_run_was_cut_short() -> None:
    """Interrupted, unreachable, refused or killed; a run that ended as planned was not."""
    records = [record(seq) for seq in range(30)]
    assert observed(records, interrupted=True, ended_by="interrupt").cut_short == "the run was interrupted"
    assert observed(records, ended_by="unreachable").cut_short == "the server could not be reached any more"
    assert observed(records, ended_by="refused").cut_short == "the server refused every request"
    assert observed(records, ended_by=None, interrupted=None).cut_short == "the run was killed"
    assert observed(records, ended_by="duration").cut_short is None


def test_an_overloaded_open_loop_is_told() -> None:
    """Requests that take ever longer pile up; the finding's evidence is the reason."""
    records = [record(seq, ttft_ms=50 + 60 * seq) for seq in range(200)]
    run = observed(records)
    assert run.overloaded is not None
    assert "in flight" in run.overloaded


def test_a_late_client_makes_a_probe_invalid_and_nothing_completed_does_not() -> None:
    """What the client did wrong is no fault of the server; a server that completes nothing fails."""
    late = [replace(each, due_ns=(each.due_ns or 0) - 900 * MS) for each in map(record, range(60))]
    assert observed(late).invalid is not None
    nothing = observed([failed(seq) for seq in range(60)])
    assert (nothing.invalid, nothing.evidence.good, nothing.evidence.due) == (None, 0, 60)


def test_late_stamps_speak_against_a_probe_and_late_reads_alone_do_not() -> None:
    """A busy client slows what it stamps itself; what the kernel stamped it only reads late. Both are told."""
    records = [record(seq) for seq in range(60)]
    busy = {
        source: observed(records, client=ClientFacts(timing_source=source, loop_stall_p99_s=0.4))
        for source in TimingSource
    }
    for run in busy.values():
        assert [finding.kind for finding in run.summary.findings if finding.kind == "client_busy"] == ["client_busy"]
    assert {source for source, run in busy.items() if run.slowed is not None} == {
        TimingSource.USER,
        TimingSource.COROUTINE,
    }
    assert "event loop late by 400 ms" in str(busy[TimingSource.USER].slowed)
