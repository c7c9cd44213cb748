"""Records to a summary: populations, rates, and what happens when there is little or nothing to fold."""

import json
from dataclasses import asdict, replace

import pytest

from loadgen.core.errors import InternalError
from loadgen.core.metrics.summary import Distribution, Summary
from loadgen.core.record import FailureKind, Outcome, RequestRecord, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, TimingSource
from tests.core.analysis.factory import (
    MS,
    S,
    analysed,
    answered,
    closed_loop,
    failed,
    open_loop,
    summarised,
    unsent,
    window,
)


def strict(summary: Summary) -> str:
    """The summary as strict JSON; raises for NaN, infinities and numbers that are not plain."""
    return json.dumps(asdict(summary), allow_nan=False)


def test_latencies_are_of_completed_measured_requests() -> None:
    """Warm-up of 5 s, failures of 1 ms and cancelled requests are in no latency."""
    records = [
        answered(0, ttft_ms=5000, phase=Phase.WARMUP),
        *closed_loop(12),
        failed(20, after_ms=1),
        answered(21, ttft_ms=9000, outcome=Outcome.CANCELLED),
    ]
    latency = summarised(records).latency
    assert (latency.ttft_s.n, latency.ttft_s.max) == (12, 0.1)
    assert (latency.e2el_s.n, latency.e2el_s.max) == (12, 0.28)


def test_cold_start_in_warmup_stays_out_of_the_sample() -> None:
    """Ten first requests of 5 s as warm-up leave the p95 where it is, and are counted apart."""
    cold = [answered(seq, ttft_ms=5000, phase=Phase.WARMUP) for seq in range(10)]
    summary = summarised(cold + closed_loop(100))
    assert summary.latency.ttft_s.p95 == 0.1
    assert summary.warmup_requests == 10


def test_gaps_leave_time_to_first_token_out() -> None:
    """TTFT 0.9 s and five gaps of 30 ms: five samples with a mean of 30 ms, not six with 175."""
    icl = summarised([answered(0, ttft_ms=900, gap_ms=30, tokens=6)]).latency.icl_s
    assert (icl.n, icl.mean, icl.max) == (5, 0.03, 0.03)


def test_itl_is_given_only_where_events_are_tokens() -> None:
    """One event of two tokens in a hundred and more: the gaps of its request are inter-chunk latency alone."""
    merged = answered(0, gap_ms=36, tokens=6, event_tokens=(1, 1, 1, 2, 1), event_ns=tuple(range(0, 5 * MS, MS)))
    latency = summarised([merged, answered(1, gap_ms=10, tokens=201)]).latency
    assert (latency.icl_s.n, latency.icl_s.missing) == (204, 0)
    assert (latency.itl_s.n, latency.itl_s.missing, latency.itl_s.max) == (200, 1, 0.01)


def test_a_run_with_speculation_has_no_itl() -> None:
    """Three tokens a step: no inter-token latency, not even of the request in which no draft was accepted."""
    records = [answered(0, gap_ms=36, tokens=31, per_event=3), answered(1, gap_ms=10, tokens=6)]
    latency = summarised(records).latency
    assert (latency.icl_s.n, latency.icl_s.missing) == (15, 0)
    assert (latency.itl_s.n, latency.itl_s.missing, latency.itl_s.mean) == (0, 2, None)
    assert latency.tpot_s.max == pytest.approx(0.012)


def test_one_token_answers_have_no_tpot_and_pull_no_mean_down() -> None:
    """Half of the answers have one token: n and missing say so, the mean is of the others."""
    records = [answered(seq, tokens=1 if seq % 2 else 101) for seq in range(20)]
    tpot = summarised(records).latency.tpot_s
    assert (tpot.n, tpot.missing, tpot.mean) == (10, 10, pytest.approx(0.02))


def test_an_odd_request_stays_in_the_counts() -> None:
    """320 tokens in one write: no TPOT for it, but it is sent, completed and in every other metric."""
    odd = answered(1, gap_ms=0.2, tokens=2, output_tokens=320, event_tokens=None)
    summary = summarised([answered(0), odd])
    assert (summary.requests.completed, summary.latency.e2el_s.n, summary.latency.ttft_s.n) == (2, 2, 2)
    assert (summary.latency.tpot_s.n, summary.latency.tpot_s.missing) == (1, 1)
    assert summary.tokens.output == 330


def test_replies_that_were_not_streamed_are_not_averaged_in() -> None:
    """A 30 s JSON body enters E2EL alone."""
    whole = answered(
        1, streamed=False, first_ns=None, first_output_ns=None, last_ns=30 * S, event_ns=(), event_tokens=None
    )
    latency = summarised([answered(0), whole]).latency
    assert (latency.ttft_s.n, latency.ttft_s.missing, latency.ttft_s.max) == (1, 1, 0.1)
    assert (latency.e2el_s.n, latency.e2el_s.max) == (2, 30.0)


def test_failures_are_counted_by_kind_and_planned_adds_up() -> None:
    """Three 429s in 100 are seen; planned = completed + failed + cancelled + dropped."""
    limited = [failed(seq, kind=FailureKind.RATE_LIMITED, status=429) for seq in range(95, 98)]
    records = [*closed_loop(95), *limited, answered(98, outcome=Outcome.CANCELLED), unsent(99)]
    counts = summarised(records).requests
    assert (counts.planned, counts.sent, counts.completed) == (100, 99, 95)
    assert (counts.failed, counts.cancelled, counts.dropped) == (3, 1, 1)
    assert counts.failed_by_kind == {"rate_limited": 3}


def test_requests_that_were_sent_again_are_counted() -> None:
    """Two of five went out on a fresh connection after a stale one, whatever became of them; warm-up is apart."""
    records = [answered(0, resent=True), failed(1, resent=True), answered(2), answered(3), answered(4)]
    records.append(answered(5, resent=True, phase=Phase.WARMUP))
    assert summarised(records).requests.resent == 2


def test_failures_are_grouped_with_one_sample_each() -> None:
    """A thousand messages with a request id in each are one group a kind and status."""
    records = [failed(seq, message=f"no slot for request {seq}") for seq in range(1000)]
    records += [failed(1000 + seq, status=503, message=None) for seq in range(2)]
    records += [failed(1002, kind=FailureKind.CONNECT, status=None, message="refused")]
    groups = analysed(records).failures
    assert [(group.kind, group.http_status, group.count) for group in groups] == [
        ("http_5xx", 500, 1000),
        ("http_5xx", 503, 2),
        ("connect", None, 1),
    ]
    assert groups[0].example == "no slot for request 0"
    assert groups[1].example is None


def test_error_adjusted_percentiles_count_failures_and_drops() -> None:
    """25 answers, 74 failures, a drop: the survivors' median is 0.1 s, the users' unknown. Cancelled is in neither."""
    records = [*closed_loop(25), *(failed(100 + seq) for seq in range(74)), unsent(300)]
    records.append(answered(301, outcome=Outcome.CANCELLED))
    summary = summarised(records)
    assert summary.latency.ttft_s.p50 == 0.1
    adjusted = summary.latency_error_adjusted["ttft_s"]
    assert (adjusted.n, adjusted.min, adjusted.p50) == (100, 0.1, None)


def test_a_closed_loop_has_no_error_adjusted_latency_from_due() -> None:
    """What was never due was not late either, and a failure does not change that."""
    adjusted = summarised([*closed_loop(25), *(failed(100 + seq) for seq in range(5))]).latency_error_adjusted
    assert (adjusted["e2el_s"].n, adjusted["e2el_from_due_s"].n, adjusted["ttft_from_due_s"].n) == (30, 0, 0)
    late = [answered(0, lag_ms=1), failed(1, due_ns=0)]
    assert summarised(late, load=open_loop()).latency_error_adjusted["ttft_from_due_s"].n == 2


def test_tokens_of_failed_requests_are_apart() -> None:
    """One population a row: what a truncated answer had streamed is partial output."""
    cut = failed(1, kind=FailureKind.TRUNCATED, status=200, event_tokens=(1,) * 6, event_ns=(1, 2, 3, 4, 5, 6))
    tokens = summarised([answered(0, tokens=10), cut]).tokens
    assert (tokens.output, tokens.partial_output) == (10, 6)


def test_reasoning_tokens_are_counted_once() -> None:
    """Completion 100 of which reasoning 60 is 100."""
    assert summarised([answered(0, tokens=100, reasoning_tokens=60)]).tokens.output == 100


def test_unknown_token_counts_are_none_not_zero() -> None:
    """A server that sends no usage: no input total and no token rates."""
    uncounted = {"input_tokens": None, "output_tokens": None, "output_tokens_from": None, "event_tokens": None}
    summary = summarised(closed_loop(30, **uncounted))
    assert (summary.tokens.input, summary.tokens.output) == (None, None)
    assert (summary.throughput.output_tokens_per_s, summary.throughput.input_tokens_per_s) == (None, None)
    assert (summary.tokens.output_from_server, summary.tokens.requests_without_server_count) == (False, 30)


def test_server_count_of_all_requests_is_said() -> None:
    """And a single count from the stream is said as well."""
    assert summarised(closed_loop(3)).tokens.output_from_server
    mixed = [*closed_loop(2), answered(9, output_tokens_from=TokenSource.STREAM)]
    tokens = summarised(mixed).tokens
    assert (tokens.output_from_server, tokens.requests_without_server_count) == (False, 1)


def test_tokens_count_when_they_arrive() -> None:
    """A window of 2 s in an answer of 4 s holds the tokens of its 2 s, and no completion."""
    long = answered(0, ttft_ms=0, gap_ms=100, tokens=41)
    throughput = summarised([long], window=window(2.0)).throughput
    assert throughput.output_tokens_per_s == 10.0
    assert throughput.requests_per_s == 0.0


def test_late_answers_do_not_raise_throughput() -> None:
    """Answers of 3 s in a window of 2 s: what comes in the grace is outside."""
    records = [answered(seq, sent_ms=0, ttft_ms=3000, tokens=100, gap_ms=1) for seq in range(10)]
    throughput = summarised(records, window=window(2.0)).throughput
    assert (throughput.requests_per_s, throughput.output_tokens_per_s) == (0.0, 0.0)


def test_throughput_is_weighted_by_tokens_not_by_events() -> None:
    """Six tokens an event are six tokens: rate and series hold them all."""
    record = answered(0, ttft_ms=0, gap_ms=100, tokens=61, per_event=6)
    summary = summarised([record], window=window(1.0))
    assert summary.throughput.output_tokens_per_s == 1 + 9 * 6
    assert summary.time_series is not None
    assert sum(summary.time_series.output_tokens) == 61


def test_a_count_of_the_whole_answer_is_spread_over_its_events() -> None:
    """60 tokens in 20 events without further word: three an event."""
    record = answered(0, ttft_ms=0, gap_ms=100, tokens=20, output_tokens=60, event_tokens=None)
    assert summarised([record], window=window(1.0)).throughput.output_tokens_per_s == pytest.approx(30)


def test_hidden_reasoning_is_output_but_did_not_arrive() -> None:
    """Both counts are there: 650 in total, 40 in the rate."""
    record = answered(0, ttft_ms=0, gap_ms=20, tokens=40, output_tokens=650, reasoning_tokens=610, event_tokens=None)
    summary = summarised([record], window=window(1.0))
    assert summary.tokens.output == 650
    assert summary.throughput.output_tokens_per_s == pytest.approx(40)


def test_what_warmup_left_in_flight_counts_for_the_server_not_for_latency() -> None:
    """Tokens and completions of warm-up requests in the window are the server's work in it."""
    warm = answered(0, ttft_ms=0, gap_ms=100, tokens=20, phase=Phase.WARMUP)
    measured = answered(1, sent_ms=1000, ttft_ms=0, gap_ms=100, tokens=20)
    summary = summarised([warm, measured], window=window(2.0, start_s=1.0))
    assert summary.throughput.output_tokens_per_s == 20.0
    assert summary.throughput.requests_per_s == 1.0
    assert summary.concurrency.peak == 2
    assert summary.latency.ttft_s.n == 1


def test_throughput_is_of_what_happened_not_of_what_was_configured() -> None:
    """A cap of 32 of which the server runs 1: total tokens over time."""
    summary = summarised(closed_loop(50), load=replace(open_loop(), max_concurrency=32))
    throughput = summary.throughput.output_tokens_per_s
    assert throughput == pytest.approx(10 / 0.281, rel=0.03)


def test_offered_and_sent_rates_differ_when_the_client_drops() -> None:
    """50 due and 40 sent in 5 s: both are shown."""
    records = [answered(seq, sent_ms=100 * seq, lag_ms=0) for seq in range(40)]
    records += [unsent(40 + seq, due_ms=4000 + 100 * seq) for seq in range(10)]
    rate = summarised(records, load=open_loop(), window=window(5.0)).rate
    assert (rate.offered_rps, rate.sent_rps) == (10.0, 8.0)


def test_closed_loop_offers_no_rate() -> None:
    """There are no due instants: None, and the sent rate alone."""
    summary = summarised(closed_loop(30))
    assert summary.rate.offered_rps is None
    assert summary.rate.sent_rps == pytest.approx(1 / 0.281)
    assert summary.latency.schedule_lag_s == Distribution(n=0, missing=30)


def test_hidden_queueing_shows_between_sent_and_due() -> None:
    """5 requests/s, cap 1, service 0.4 s, 12 requests: 400 ms from sent, 1.5 s from due, at most 2.6 s."""
    records = [
        answered(seq, sent_ms=400 * seq, lag_ms=200 * seq, cap_wait_ns=200 * MS * seq, ttft_ms=400, tokens=1)
        for seq in range(12)
    ]
    summary = summarised(records, load=open_loop(max_concurrency=1))
    assert summary.latency.e2el_s.mean == pytest.approx(0.4)
    assert summary.latency.e2el_from_due_s.mean == pytest.approx(1.5)
    assert summary.latency.e2el_from_due_s.max == pytest.approx(2.6)
    assert summary.latency.cap_wait_s.max == pytest.approx(2.2)
    assert any(finding.kind == "cap_limited" for finding in summary.verdict.findings)


def test_peak_concurrency_of_sequential_requests_is_one() -> None:
    """However many fall into one second."""
    summary = summarised(closed_loop(30))
    assert summary.concurrency.peak == 1
    assert summary.concurrency.mean == pytest.approx(1.0, abs=0.01)
    assert summary.time_series is not None
    assert max(summary.time_series.concurrency) <= 1.0


def test_drain_is_in_the_run_and_not_in_the_steady_state() -> None:
    """Four slots, the last request ten times as long: steady state holds four, the whole run less."""
    records = [answered(seq, sent_ms=1000 * (seq // 4), ttft_ms=998, tokens=1) for seq in range(80)]
    records.append(answered(80, sent_ms=20_000, ttft_ms=10_000, tokens=1))
    summary = summarised(records, window=window(30.0))
    assert summary.steady_state is not None
    assert summary.steady_state.start_s == 0.0
    assert summary.steady_state.end_s == pytest.approx(20.0, abs=0.7)
    assert summary.steady_state.concurrency_mean == pytest.approx(4.0, rel=0.05)
    assert summary.steady_state.requests_per_s == pytest.approx(4.0, rel=0.05)
    assert summary.concurrency.mean is not None
    assert summary.concurrency.mean < 3.1


def test_goodput_and_attainment_count_what_is_not_good() -> None:
    """Ten due: six good, one slow, one failed, one dropped, one with a single token under a TPOT objective."""
    records = [answered(seq, sent_ms=100 * seq, lag_ms=0) for seq in range(6)]
    records += [
        answered(6, sent_ms=600, lag_ms=0, ttft_ms=900),
        failed(7, sent_ms=700, due_ns=700 * MS),
        unsent(8, due_ms=800),
        answered(9, sent_ms=900, lag_ms=0, tokens=1),
    ]
    objectives = {"ttft_s": 0.5, "tpot_s": 0.05}
    summary = summarised(records, load=open_loop(), slo=objectives, window=window(2.0))
    assert summary.slo is not None
    assert (summary.slo.good, summary.slo.due, summary.slo.attainment_ratio) == (6, 10, 0.6)
    assert summary.slo.objectives == objectives
    assert summary.throughput.goodput_rps == 3.0


def test_attainment_counts_the_last_request_of_a_run_by_number() -> None:
    """The window ends with the last start, which still is one of those due."""
    summary = summarised(closed_loop(30), slo={"ttft_s": 0.5})
    assert summary.slo is not None
    assert (summary.slo.due, summary.slo.attainment_ratio) == (30, 1.0)


def test_without_objectives_there_is_no_goodput() -> None:
    """None rather than everything or nothing."""
    summary = summarised(closed_loop(30))
    assert (summary.slo, summary.throughput.goodput_rps) == (None, None)


def test_objectives_of_a_run_in_which_nothing_was_due() -> None:
    """No ratio of nothing."""
    summary = summarised([], slo={"ttft_s": 0.5})
    assert summary.slo is not None
    assert (summary.slo.due, summary.slo.attainment_ratio) == (0, None)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [failed(seq) for seq in range(100)],
        [failed(0, sent_ns=None, kind=FailureKind.CLIENT_RESOURCE, status=None)],
        [unsent(seq) for seq in range(5)],
        [unsent(0, due_ms=None, outcome=Outcome.CANCELLED)],
        [answered(0)],
        [answered(0, tokens=1)],
        [answered(0, closed_ns=None)],
        [answered(0, streamed=False, first_ns=None, last_ns=None, event_ns=(), event_tokens=None)],
        [answered(0, event_tokens=())],
        [answered(0, ttft_ms=0, gap_ms=0, closed_ns=0)],
        [answered(seq, sent_ms=0, ttft_ms=0, gap_ms=0, lag_ms=0) for seq in range(40)],
    ],
)
@pytest.mark.parametrize("finished", [True, False])
def test_little_or_nothing_still_makes_a_complete_strict_summary(records: list[RequestRecord], finished: bool) -> None:
    """No requests, all failed, one request, no time between instants: every key is there, no NaN, no exception."""
    changes: dict[str, object] = {} if finished else {"client": None, "interrupted": None, "ended_by": None}
    analysis = analysed(records, slo={"tpot_s": 0.05}, **changes)
    text = strict(analysis.summary)
    assert analysis.summary.requests.planned == len(records)
    assert set(json.loads(text)["latency"]["ttft_s"]) >= {"n", "missing", "mean", "p50", "p99_9"}


def test_all_failed_has_counts_and_nulls() -> None:
    """A server that refuses everything: counts, no latency, an invalid verdict."""
    summary = summarised([failed(seq) for seq in range(100)])
    assert summary.latency.ttft_s == Distribution(n=0, missing=0)
    assert summary.throughput.requests_per_s == 0.0
    assert summary.requests.failed == 100
    assert not summary.verdict.valid


def test_requests_of_a_killed_run_without_a_record_count_as_cancelled() -> None:
    """12 of 30 have a record when the process is killed: 18 are cancelled, and the run says that it was interrupted."""
    summary = summarised(closed_loop(12), planned=30, interrupted=None, ended_by=None)
    assert summary.interrupted
    assert (summary.requests.planned, summary.requests.completed, summary.requests.cancelled) == (30, 12, 18)


def test_planned_requests_of_the_manifest_include_warmup() -> None:
    """15 records for 15 planned requests, three of them warm-up: nothing is missing, twelve were measured."""
    warm = [answered(100 + seq, phase=Phase.WARMUP) for seq in range(3)]
    summary = summarised(closed_loop(12) + warm, planned=15)
    assert (summary.requests.planned, summary.requests.cancelled, summary.interrupted) == (12, 0, False)


def test_more_records_than_requests_is_loud() -> None:
    """A broken promise of ours hides no number."""
    with pytest.raises(InternalError, match="12 requests have a record, but only 10 were planned"):
        summarised(closed_loop(12), planned=10)


def test_two_records_of_one_request_are_loud() -> None:
    """Each planned request yields exactly one record."""
    with pytest.raises(InternalError, match="1 measured requests have a second record"):
        summarised([*closed_loop(12), answered(3)])


def test_client_facts_come_from_the_manifest_and_stamps_from_the_records() -> None:
    """CPU and loop from the run, the worst read of each request from its record."""
    records = [answered(seq, stamp_lag_ns=seq * MS, stalled_events=1) for seq in range(101)]
    client = ClientFacts(timing_source=TimingSource.KERNEL, workers=2, cpu_ratio=0.4, loop_stall_p99_s=0.002)
    found = summarised(records, client=client).client
    assert (found.timing_source, found.workers, found.cpu_ratio, found.loop_stall_p99_s) == ("kernel", 2, 0.4, 0.002)
    assert found.stamp_lag_p99_s == pytest.approx(0.099)
    assert found.stalled_ratio == pytest.approx(0.1)


def test_without_kernel_stamps_there_is_no_stamp_lag() -> None:
    """None, not zero."""
    found = summarised(closed_loop(3), client=None).client
    assert (found.timing_source, found.stamp_lag_p99_s, found.cpu_ratio) == ("unknown", None, None)


def test_coalesced_share_is_of_gaps_that_are_zero() -> None:
    """Seven events a write: six of seven gaps are zero; TPOT still holds, and the verdict says what does not."""
    stamps = tuple(100 * MS + 90 * MS * (place // 7) for place in range(70))
    record = answered(0, tokens=70, event_ns=stamps, first_ns=stamps[0], last_ns=stamps[-1])
    summary = summarised([record])
    assert summary.client.coalesced_ratio == pytest.approx(60 / 69)
    assert summary.latency.tpot_s.max == pytest.approx(9 * 0.09 / 69)
    assert any(finding.kind == "coalesced" for finding in summary.verdict.findings)


def test_the_wall_clock_decides_nothing() -> None:
    """A step of the wall clock changes no number: durations are differences on the run's own axis."""
    records = closed_loop(30)
    before, after = summarised(records), summarised(records, origin_unix_ns=0, ended_unix_ns=-5 * S)
    assert before == after


def test_speculation_is_of_completed_measured_requests() -> None:
    """Warm-up and failed streams say nothing about acceptance."""
    fast = answered(0, tokens=13, per_event=4)
    other = answered(1, tokens=13, per_event=2, phase=Phase.WARMUP)
    broken = answered(2, tokens=13, per_event=2, outcome=Outcome.FAILED, failure=failed(2).failure)
    found = summarised([fast, other, broken]).speculation
    assert found is not None
    assert (found.steps, found.acceptance_length) == (3, 4.0)
    assert summarised(closed_loop(3)).speculation is None


def test_curves_are_given_for_what_was_measured() -> None:
    """Each curve ends at its distribution's maximum; a metric without values has none."""
    analysis = analysed(closed_loop(300))
    assert set(analysis.curves) == {"ttft_s", "tpot_s", "icl_s", "e2el_s"}
    assert analysis.curves["icl_s"].value_s[-1] == analysis.summary.latency.icl_s.max
    assert analysed([failed(0)]).curves == {}


def test_headline_numbers_agree_with_each_other() -> None:
    """Over the same run: tokens = rate x window, mean concurrency = completion rate x time in flight."""
    summary = summarised(closed_loop(100), window=window(28.101))
    rate, tokens = summary.throughput.requests_per_s, summary.throughput.output_tokens_per_s
    assert rate is not None
    assert tokens is not None
    assert tokens * 28.101 == pytest.approx(summary.tokens.output)
    assert summary.concurrency.mean == pytest.approx(rate * 0.281, rel=0.001)
    assert "not_steady" not in {finding.kind for finding in summary.verdict.findings}


def test_counts_are_whole_numbers() -> None:
    """No count becomes a fraction."""
    counts = asdict(summarised([*closed_loop(12), failed(50)]).requests)
    counts.pop("failed_by_kind")
    assert all(type(count) is int for count in counts.values())
