"""Each doubt on the run that deserves it, and not on the one that does not."""

import re
from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.analysis.findings.judge import RULES
from loadgen.core.analysis.findings.kinds import FindingKind, Severity
from loadgen.core.record import FailureKind, Outcome, RequestRecord, RequestSpeculation
from loadgen.core.request import Phase
from loadgen.core.run import ClientFacts, TimingSource, Window
from loadgen.core.server.sample import Scrape
from tests.core.analysis.factory import MS, S, answered, failed, findings, manifest, open_loop, summarised, unsent
from tests.core.server.factory import page, sample, unread


def window(end_s: float, start_s: float = 0.0) -> Window:
    return Window(start_ns=round(start_s * S), end_ns=round(end_s * S), kind="duration")


def closed_loop(n: int = 120, **changes: object) -> list[RequestRecord]:
    """One slot, requests of 280 ms each following the one before."""
    return [answered(seq, sent_ms=281 * seq, **changes) for seq in range(n)]


def arrivals(n: int = 120, every_ms: float = 100, **changes: object) -> list[RequestRecord]:
    """An open loop of 10 requests/s sent on time."""
    return [answered(seq, sent_ms=every_ms * seq, lag_ms=0, **changes) for seq in range(n)]


def around(records: list[RequestRecord], **counted: float) -> tuple[Scrape, Scrape]:
    """The server's page before all of them, at zero, and after all of them."""
    end_s = max(record.closed_ns or 0 for record in records) / S + 1
    return page(-1, sample(**dict.fromkeys(counted, 0.0))), page(end_s, sample(**counted))


def client(**changes: object) -> ClientFacts:
    return ClientFacts(timing_source=TimingSource.KERNEL, **changes)


@pytest.mark.parametrize("records", [closed_loop(), arrivals()], ids=["closed", "open"])
def test_a_sound_run_has_no_finding(records: list[RequestRecord]) -> None:
    """A quiet client, a steady server, complete counts: nothing to say."""
    load = {} if records[0].due_ns is None else {"load": open_loop()}
    summary = summarised(records, client=client(cpu_ratio=0.3, loop_stall_p99_s=0.001), **load)
    assert summary.verdict.findings == ()
    assert summary.verdict.valid


def test_every_kind_has_its_rule() -> None:
    """One function a kind."""
    assert len(RULES) == len(FindingKind)
    assert {rule.__name__ for rule in RULES} == {kind.value for kind in FindingKind}


def queued(rate_rps: float, service_rps: float, n: int = 200) -> list[RequestRecord]:
    """Arrivals at a rate in front of one server that completes them one by one at another."""
    records, free_ms = [], 0.0
    for seq in range(n):
        sent_ms = seq * 1e3 / rate_rps
        free_ms = max(free_ms, sent_ms) + 1e3 / service_rps
        records.append(answered(seq, sent_ms=sent_ms, lag_ms=0, tokens=1, ttft_ms=free_ms - sent_ms))
    return records


def test_a_server_that_cannot_keep_up_is_called_overloaded() -> None:
    """20 requests/s before a server of 8: requests pile up. Said once, as that; warming up would not help."""
    found = findings(queued(20, 8), load=open_loop(request_rate_rps=20.0))
    assert "20" in found["overloaded"].evidence
    assert "8" in found["overloaded"].evidence
    assert "warmup_drift" not in found


def test_a_server_that_keeps_up_or_a_cap_is_no_overload() -> None:
    """At 20 of 25 nothing piles up; behind a cap the wait is the client's; a closed loop cannot pile up."""
    assert "overloaded" not in findings(queued(20, 25), load=open_loop(request_rate_rps=20.0))
    capped = open_loop(request_rate_rps=20.0, max_concurrency=4)
    assert "overloaded" not in findings(queued(20, 8), load=capped)
    assert "overloaded" not in findings([replace(record, due_ns=None) for record in queued(20, 8)])


def test_a_rising_load_that_is_answered_as_fast_as_before_is_no_overload() -> None:
    """Few arrivals at first and many at the end, each answered in 1 s: the trace rose, the server kept up."""
    sent_ms = [*(500 * n for n in range(20)), *(10_000 + 20 * n for n in range(80))]
    records = [answered(n, sent_ms=at, lag_ms=0, tokens=1, ttft_ms=1000) for n, at in enumerate(sent_ms)]
    found = findings(records, load=open_loop())
    assert "overloaded" not in found


def test_a_window_of_a_few_answers_is_not_called_overloaded() -> None:
    """Answers of 8 s in a window of 10 s: most have not completed by its end, and nothing is wrong with the server."""
    records = [answered(seq, sent_ms=100 * seq, lag_ms=0, ttft_ms=8000, tokens=1) for seq in range(100)]
    assert "overloaded" not in findings(records, load=open_loop())


def test_gravest_first_and_one_invalid_finding_makes_the_run_invalid() -> None:
    """The order in which people read them."""
    verdict = summarised([failed(seq, sent_ms=100 * seq) for seq in range(5)]).verdict
    severities = [Severity(finding.severity) for finding in verdict.findings]
    assert severities == sorted(severities, key=list(Severity).index)
    assert severities[0] is Severity.INVALID
    assert not verdict.valid


@pytest.mark.parametrize(
    ("ended_by", "words"), [("refused", "refused every request"), ("unreachable", "could not be reached any more")]
)
def test_a_run_that_was_given_up_says_why(ended_by: str, words: str) -> None:
    """Nobody has to guess why 120 of 500 requests were sent."""
    load = replace(manifest().load, num_requests=500)
    found = findings(closed_loop(), ended_by=ended_by, load=load)["given_up"]
    assert found.severity == "warning"
    assert "given up after 120 of 500 requests" in found.evidence
    assert words in found.evidence


def test_a_run_that_ended_by_its_plan_was_not_given_up() -> None:
    """By requests, by duration, or by hand, which is another finding."""
    for ended_by in ("requests", "duration", "interrupt", None):
        assert "given_up" not in findings(closed_loop(), ended_by=ended_by)


# --- what makes a run invalid


def test_sent_below_offered() -> None:
    """90 of 100 due were sent in the window and there was no cap: the server saw another load."""
    records = arrivals(90) + [unsent(90 + seq, due_ms=9000 + 100 * seq) for seq in range(10)]
    found = findings(records, load=open_loop(), window=window(10))["sent_below_offered"]
    assert found.severity == "invalid"
    assert "90 of 100 requests due were sent in time (90.0%" in found.evidence


def test_sent_below_offered_needs_more_than_five_percent() -> None:
    """96 of 100 is within the limit."""
    records = arrivals(96) + [unsent(96 + seq, due_ms=9600 + 100 * seq) for seq in range(4)]
    assert "sent_below_offered" not in findings(records, load=open_loop(), window=window(10))


def test_sent_late_out_of_the_window_is_below_offered() -> None:
    """A client that falls behind by half sends half of what is due in time."""
    records = [answered(seq, sent_ms=200 * seq, lag_ms=100 * seq) for seq in range(100)]
    found = findings(records, load=open_loop(), window=window(10))
    assert "50 of 100" in found["sent_below_offered"].evidence
    assert "client_lag" in found


def test_a_burst_at_the_end_of_the_window_is_not_the_client_falling_behind() -> None:
    """Bursts of twenty within a millisecond, each sent within two: the last burst leaves after the window's end."""
    records = [
        answered(20 * burst + place, sent_ms=1000 * burst + place * 0.05 + 2, lag_ms=2)
        for burst in range(5)
        for place in range(20)
    ]
    found = findings(records, load=open_loop(burstiness=0.01))
    assert "sent_below_offered" not in found
    assert "client_lag" not in found


def test_a_cap_is_not_the_client_falling_behind() -> None:
    """With a cap the load is what the cap lets through: a warning, not an invalid run."""
    records = [
        answered(seq, sent_ms=400 * seq, lag_ms=200 * seq, cap_wait_ns=200 * MS * seq, ttft_ms=400, tokens=1)
        for seq in range(50)
    ] + [unsent(50 + seq, due_ms=10_000 + 200 * seq, cap_wait_ns=MS) for seq in range(50)]
    found = findings(records, load=open_loop(request_rate_rps=5.0, max_concurrency=1), window=window(20))
    assert "sent_below_offered" not in found
    assert "client_lag" not in found
    assert found["cap_limited"].severity == "warning"


def test_waiting_for_an_answer_of_the_session_is_not_the_client_falling_behind() -> None:
    """A turn that is due before its predecessor's answer waits for the server."""
    records = arrivals(50) + [
        answered(50 + seq, sent_ms=20_000, lag_ms=15_000, cap_wait_ns=15 * S, session_id="s", turn=1)
        for seq in range(40)
    ]
    records += [unsent(90 + seq, due_ms=5000, session_id="s", turn=2) for seq in range(10)]
    found = findings(records, load=open_loop(), window=window(10))
    assert "sent_below_offered" not in found
    assert "client_lag" not in found


def test_client_lag() -> None:
    """p99 of the client's own lateness over 50 ms."""
    late = [answered(seq, sent_ms=100 * seq, lag_ms=60 if seq % 20 == 0 else 0) for seq in range(120)]
    found = findings(late, load=open_loop())["client_lag"]
    assert found.severity == "invalid"
    assert "60 ms at p99; the limit is 50 ms" in found.evidence


def test_client_lag_is_judged_by_what_is_measured() -> None:
    """60 ms late is little against a TTFT of one second: the limit is then 100 ms."""
    late = [answered(seq, sent_ms=100 * seq, lag_ms=60, ttft_ms=1000) for seq in range(120)]
    assert "client_lag" not in findings(late, load=open_loop())


def test_client_cpu_needs_both_signs() -> None:
    """A full core and late reads; a full core alone is a warning, late reads alone are what kernel stamps are for."""
    late = closed_loop(stamp_lag_ns=6 * MS)
    found = findings(late, client=client(cpu_ratio=0.96))
    assert found["client_cpu"].severity == "invalid"
    assert "client_busy" not in found
    only_busy = findings(closed_loop(stamp_lag_ns=1 * MS), client=client(cpu_ratio=0.96))
    assert "client_cpu" not in only_busy
    assert "CPU 96%" in only_busy["client_busy"].evidence
    only_late = findings(late, client=client(cpu_ratio=0.5))
    assert not {"client_cpu", "client_busy"} & set(only_late)


def test_a_lost_worker_makes_the_run_invalid() -> None:
    """Its share of the load was missing from then on."""
    found = findings(closed_loop(), client=client(workers=3, workers_lost=1))
    assert found["worker_lost"].severity == "invalid"
    assert found["worker_lost"].evidence.startswith("1 of 3 worker processes")
    assert "worker_lost" not in findings(closed_loop(), client=client(workers=3))


def test_without_kernel_stamps_the_event_loop_tells() -> None:
    """A stalled loop under a full core is as bad as late stamps."""
    facts = client(cpu_ratio=1.0, loop_stall_p99_s=0.02)
    assert findings(closed_loop(), client=facts)["client_cpu"].severity == "invalid"
    alone = findings(closed_loop(), client=client(cpu_ratio=0.2, loop_stall_p99_s=0.02))
    assert "event loop late by 20 ms" in alone["client_busy"].evidence


def test_no_completion_in_the_window() -> None:
    """Answers that all end after the window leave nothing to report."""
    records = [answered(seq, sent_ms=0, ttft_ms=3000) for seq in range(5)]
    found = findings(records, window=window(2))["no_completion"]
    assert found.severity == "invalid"
    assert "5 completed at all" in found.evidence


# --- what is said beside the numbers


def test_failures_stand_beside_the_percentiles() -> None:
    """250 of 256 failed: the share is said, and that percentiles cover the others."""
    found = findings([*closed_loop(6), *(failed(10 + seq) for seq in range(250))])["failures"]
    assert "250 of 256 requests failed (97.7%): http_5xx 250" in found.evidence
    assert "cover only requests that completed" in found.advice


def test_every_request_refused_alike() -> None:
    """A dropped key answers 401 to everything: the message is shown, and it is no load problem."""
    refused = [failed(seq, kind=FailureKind.HTTP_4XX, status=401, message="no key") for seq in range(20)]
    found = findings(refused)
    assert "Every failure is HTTP 401: no key" in found["same_error"].evidence
    assert "no_completion" in found
    assert "same_error" not in findings([*refused, failed(30)])
    assert "same_error" not in findings([failed(0)])


def test_dropped_arrivals() -> None:
    """Due and never sent is said."""
    assert "2 of 122 requests" in findings([*arrivals(), unsent(200), unsent(201)])["arrivals_dropped"].evidence


def test_cap_limited_names_the_slots_that_the_rate_needs() -> None:
    """10 requests/s of 1 s through 5 slots: Little's law asks for about 10."""
    records = [
        answered(seq, sent_ms=200 * seq, lag_ms=100 * seq, cap_wait_ns=100 * MS * seq, ttft_ms=1000, tokens=1)
        for seq in range(101)
    ]
    found = findings(records, load=open_loop(max_concurrency=5))["cap_limited"]
    assert "one of 5 slots; 10 requests/s of 1 s need about 10" in found.evidence


def test_a_cap_that_is_not_reached_is_no_doubt() -> None:
    """Waits of a hundredth of the latency are nothing."""
    records = arrivals(cap_wait_ns=MS)
    assert "cap_limited" not in findings(records, load=open_loop(max_concurrency=50))


def test_coalesced_delivery() -> None:
    """One event in ten together with the one before it."""
    stamps = tuple(100 * MS + 20 * MS * (place - place // 10) for place in range(101))
    bunched = closed_loop(30, event_ns=stamps, tokens=101)
    assert re.search(r"^10\.0% of events arrived together", findings(bunched)["coalesced"].evidence)
    few = tuple(100 * MS + 20 * MS * (place - place // 50) for place in range(101))
    assert "coalesced" not in findings(closed_loop(30, event_ns=few, tokens=101))


def test_events_merged_by_a_late_read_are_not_blamed_on_a_proxy() -> None:
    """What stalled stamps account for is not coalesced delivery."""
    stamps = tuple(100 * MS + 20 * MS * (place - place // 10) for place in range(101))
    found = findings(closed_loop(30, event_ns=stamps, tokens=101, stalled_events=10))
    assert "coalesced" not in found
    assert "stalled_stamps" in found


def test_stalled_stamps() -> None:
    """More than one event in a hundred has a later segment's stamp."""
    assert "20.0%" in findings(closed_loop(30, stalled_events=2))["stalled_stamps"].evidence
    assert "stalled_stamps" not in findings([*closed_loop(119), answered(200, sent_ms=281 * 119, stalled_events=2)])


def test_replies_not_streamed() -> None:
    """Asked for a stream and got a body; nothing to say when no stream was asked for."""
    whole = {"streamed": False, "first_ns": None, "first_output_ns": None, "event_ns": (), "event_tokens": None}
    records = [*closed_loop(118), *(answered(200 + seq, sent_ms=281 * (118 + seq), **whole) for seq in range(2))]
    assert "2 of 120 replies" in findings(records)["not_streamed"].evidence
    assert "not_streamed" not in findings(records, options={"stream": False})


def test_usage_missing() -> None:
    """Counts that are not the server's are named."""
    records = [
        *closed_loop(110),
        *(answered(200 + seq, output_tokens_from=None, output_tokens=None) for seq in range(3)),
    ]
    assert "3 of 113" in findings(records)["usage_missing"].evidence


def test_token_counts_that_disagree() -> None:
    """The server says 10 a request where 7 came; a stop token without text is forgiven."""
    found = findings(closed_loop(event_tokens=(1,) * 7))["token_counts_disagree"]
    assert "360 of 1200 tokens (30.0%)" in found.evidence
    assert "token_counts_disagree" not in findings(closed_loop(event_tokens=(1,) * 9))


def test_hidden_reasoning() -> None:
    """Counted and not streamed."""
    hidden = closed_loop(output_tokens=650, reasoning_tokens=640, event_tokens=None)
    found = findings(hidden)
    assert "120 of 120 answers" in found["reasoning_hidden"].evidence
    assert "token_counts_disagree" not in found


def test_decode_that_was_not_timed() -> None:
    """Answers in one piece have no TPOT and are counted."""
    at_once = closed_loop(tokens=1, output_tokens=320, event_tokens=None)
    assert "120 of 120 answers of two tokens or more" in findings(at_once)["decode_not_timed"].evidence
    assert "decode_not_timed" not in findings(closed_loop(tokens=1))


def test_a_few_answers_in_one_piece_are_no_doubt() -> None:
    """Six of 120 leave the distribution as it is, seven are said; answers of one token are not among them."""
    at_once, ordinary = closed_loop(tokens=1, output_tokens=320, event_tokens=None), closed_loop()
    assert "decode_not_timed" not in findings(at_once[:6] + ordinary[6:])
    mixed = at_once[:7] + ordinary[7:] + [answered(seq, sent_ms=281 * seq, tokens=1) for seq in range(120, 170)]
    assert "7 of 120 answers" in findings(mixed)["decode_not_timed"].evidence


def test_first_events_of_several_tokens() -> None:
    """Four of 13 tokens in the first event: by how much TPOT is too low is said."""
    found = findings(closed_loop(tokens=10, output_tokens=13, event_tokens=(4, *(1,) * 9)))["first_event_several"]
    assert found.severity == "info"
    assert "In 120 of 120 answers" in found.evidence
    assert "too low by 25.0%" in found.evidence


def test_lengths_that_are_not_those_asked_for() -> None:
    """max_tokens 256 and answers of 10; prompts 15 % over: actual lengths are used, the difference is said."""
    found = findings(closed_loop(planned_output_tokens=256, planned_input_tokens=85))
    assert "1200 output tokens where 30720 were asked for (0.04 x)" in found["output_length"].evidence
    assert "12000 input tokens where 10200 were asked for (1.18 x)" in found["input_length"].evidence
    assert {found["output_length"].severity, found["input_length"].severity} == {"info"}
    exact = findings(closed_loop(planned_output_tokens=10, planned_input_tokens=95))
    assert not {"output_length", "input_length"} & set(exact)


@pytest.mark.parametrize(
    ("planned", "severity"), [(91, None), (89, "info"), (51, "info"), (49, "warning"), (199, "info"), (201, "warning")]
)
def test_prompts_of_quite_another_length_are_a_warning(planned: int, severity: str | None) -> None:
    """The server counts 100 tokens a prompt: beyond twice or half of what was asked for the load is another one."""
    found = findings(closed_loop(planned_input_tokens=planned)).get("input_length")
    assert (None if found is None else found.severity) == severity
    assert severity != "warning" or "not the load that was asked for" in found.evidence


@pytest.mark.parametrize(
    ("text", "token_ids", "advice"),
    [
        ("invented", False, "--token-ids sends exact lengths"),
        ("invented", True, "other tokens than were sent"),
        ("borrowed", False, "more of them (--prompts)"),
        ("real", False, "another model's tokens"),
    ],
)
def test_advice_on_input_lengths_fits_the_data(text: str, token_ids: bool, advice: str) -> None:
    """Only invented prompts can be sent as token ids; what a file holds cannot be made longer."""
    found = findings(closed_loop(planned_input_tokens=85), data={"text": text}, options={"token_ids": token_ids})
    assert advice in found["input_length"].advice


def test_a_bound_on_answers_is_what_was_asked_for() -> None:
    """The data wants 256 tokens and --max-tokens 10: answers of 10 are as long as asked, answers of 10 under 20 not."""
    asked = closed_loop(planned_output_tokens=256)
    assert "output_length" not in findings(asked, options={"max_tokens": 10})
    assert "1200 output tokens where 2400" in findings(asked, options={"max_tokens": 20})["output_length"].evidence


def test_answers_longer_than_they_were_allowed() -> None:
    """By the data's own length or the run's bound, whichever is less; the longest is told. A body that sets its own
    bound is nobody's fault."""
    asked = [
        *closed_loop(planned_output_tokens=10)[:-1],
        answered(119, sent_ms=281 * 119, tokens=30, planned_output_tokens=12),
    ]
    found = findings(asked)["limit_exceeded"]
    assert (
        found.evidence
        == "1 of 120 answers have more output tokens than they were allowed, 30 where 12 were for example."
    )
    assert found.severity == "warning"
    found = findings(closed_loop(planned_output_tokens=256), options={"max_tokens": 9})["limit_exceeded"]
    assert found.evidence.startswith("120 of 120 answers have more output tokens than they were allowed, 10 where 9")
    assert "120 of 120" in findings(closed_loop(), options={"max_tokens": 9})["limit_exceeded"].evidence
    own = {"max_tokens": 9, "extra_body": {"max_completion_tokens": 20}}
    assert "limit_exceeded" not in findings(closed_loop(), options=own)
    assert "limit_exceeded" not in findings(closed_loop(planned_output_tokens=10))


def test_answers_that_end_although_their_end_was_to_be_ignored() -> None:
    """Without that wish answers end where they end."""
    found = findings(closed_loop(planned_output_tokens=11), options={"ignore_eos": True})["ended_early"]
    assert (found.severity, found.evidence.partition(" (")[0]) == (
        "warning",
        "120 of 120 answers ended before the length asked for",
    )
    assert "ended_early" not in findings(closed_loop(planned_output_tokens=11))
    assert "ended_early" not in findings(closed_loop(planned_output_tokens=10), options={"ignore_eos": True})


def test_objective_without_a_value() -> None:
    """One-token answers under a TPOT objective are not good; a closed loop has no TTFT from due."""
    records = [answered(seq, sent_ms=281 * seq, tokens=1 if seq < 12 else 10) for seq in range(120)]
    found = findings(records, slo={"tpot_s": 0.05, "ttft_s": 0.5})["objective_without_value"]
    assert "tpot_s: 12." in found.evidence
    assert "ttft_s: " not in found.evidence
    assert (
        "ttft_from_due_s: 120"
        in findings(closed_loop(), slo={"ttft_from_due_s": 1.0})["objective_without_value"].evidence
    )


def test_warmup_drift() -> None:
    """The first 16 of 160 are three times as slow: their number is the advice."""
    rng = np.random.default_rng(0)
    slow = [(3.0 if seq < 16 else 1.0) * float(rng.lognormal(4.6, 0.2)) for seq in range(160)]
    records = [answered(seq, sent_ms=1000 * seq, ttft_ms=slow[seq]) for seq in range(160)]
    found = findings(records)["warmup_drift"]
    assert re.search(
        r"ttft_s median of the first 1\d requests [23]\.\d\d x that of the rest \(99% interval", found.evidence
    )
    assert re.search(r"--warmup-requests 1\d\)", found.advice)
    assert "tpot_s" not in found.evidence


def test_rising_latency_is_not_cured_by_warmup() -> None:
    """A queue that grows makes the beginning the faster part."""
    rng = np.random.default_rng(0)
    records = [
        answered(seq, sent_ms=100 * seq, lag_ms=0, ttft_ms=(20 + 5 * seq) * float(rng.lognormal(0, 0.1)))
        for seq in range(200)
    ]
    assert "Latency rises over the window" in findings(records, load=open_loop())["warmup_drift"].advice


def test_noise_is_no_drift() -> None:
    """Scattered latencies without a trend."""
    rng = np.random.default_rng(1)
    records = [answered(seq, sent_ms=1000 * seq, ttft_ms=float(rng.lognormal(4.6, 0.5))) for seq in range(200)]
    assert "warmup_drift" not in findings(records)


def test_numbers_that_do_not_fit_together() -> None:
    """Twice as many arrivals as completions: concurrency is not rate times latency."""
    records = [answered(seq, sent_ms=10 * seq, lag_ms=0, ttft_ms=5 * seq, tokens=1) for seq in range(1000)]
    found = findings(records, load=open_loop(request_rate_rps=100.0), window=window(10))["not_steady"]
    assert re.search(r"Mean concurrency is \d+, but 66\.\d requests/s", found.evidence)


def test_short_window() -> None:
    """A window shorter than two answers."""
    assert "short_window" in findings(closed_loop(3), window=window(0.5))
    assert "short_window" not in findings(closed_loop(3), window=window(0.6))


def test_too_few_requests_for_a_p99() -> None:
    """99 completions do not carry it; 100 do."""
    found = findings(closed_loop(99))["too_few_requests"]
    assert (found.severity, found.evidence) == ("info", "99 completed requests; a p99 needs 100.")
    assert "too_few_requests" not in findings(closed_loop(100))


def test_pages_that_lie() -> None:
    """What cannot be is no figure of the run, and is told."""
    records = closed_loop()
    lying = around(records, generation_tokens=1210, preemptions=1e300)
    found = summarised(records, scrapes=lying)
    refused = next(each for each in found.verdict.findings if each.kind == "values_refused")
    assert refused.severity == "warning"
    said = "1 of 2 readings of the server's pages have values that cannot be, preemptions of 1e+300 for one."
    assert refused.evidence == said
    assert found.server.preemptions is None
    assert "values_refused" not in findings(records, scrapes=around(records, generation_tokens=1210))


def test_foreign_traffic() -> None:
    """The server generated a tenth more than this client got, warm-up included; what it should is no finding."""
    records = [answered(500, phase=Phase.WARMUP), *closed_loop()]
    found = findings(records, scrapes=around(records, generation_tokens=1331))["foreign_traffic"]
    assert "1331 output tokens where this client has 1210" in found.evidence
    found = findings(records, scrapes=around(records, generation_tokens=1210, prompt_tokens=13_400))["foreign_traffic"]
    assert "13400 prompt tokens where this client has 12100" in found.evidence
    assert "foreign_traffic" not in findings(records, scrapes=around(records, generation_tokens=1210))
    assert "foreign_traffic" not in findings(records, scrapes=around(records, prompt_tokens=12_100))


def test_foreign_traffic_is_not_claimed_without_the_clients_own_count() -> None:
    """A cancelled answer of unknown length may hold the difference."""
    cut = answered(500, output_tokens=None, event_tokens=None, outcome=Outcome.CANCELLED)
    records = [*closed_loop(), cut]
    assert "foreign_traffic" not in findings(records, scrapes=around(records, generation_tokens=2420))


def test_hidden_reasoning_is_the_servers_work_for_us() -> None:
    """Tokens that were not streamed were generated for this client all the same."""
    records = closed_loop(output_tokens=650, reasoning_tokens=640, event_tokens=None)
    assert "foreign_traffic" not in findings(records, scrapes=around(records, generation_tokens=78_000))


def test_a_server_of_which_a_part_was_read() -> None:
    """Half of this client's tokens are on no page: there is another replica."""
    records = closed_loop()
    found = findings(records, scrapes=around(records, generation_tokens=600))
    assert "600 output tokens where this client has 1200" in found["server_partly_read"].evidence
    assert "foreign_traffic" not in found
    assert "server_partly_read" not in findings(records, scrapes=around(records, generation_tokens=1200))


def test_answers_that_were_given_up_may_be_missing_on_the_server() -> None:
    """An engine that counts a request when it ends leaves them out; those that completed must be there."""
    cut = [answered(500 + seq, tokens=100, outcome=Outcome.CANCELLED) for seq in range(3)]
    records = [*closed_loop(), *cut]
    assert "server_partly_read" not in findings(records, scrapes=around(records, generation_tokens=1200))
    assert "server_partly_read" in findings(records, scrapes=around(records, generation_tokens=1100))


def test_a_server_that_was_started_anew() -> None:
    """Its counters fell during the run: said, and no traffic is made out of what they show."""
    records = closed_loop()
    before, after = around(records, generation_tokens=1200)
    found = findings(records, scrapes=(before, page(1, sample(generation_tokens=5000)), after))
    assert "fell or went" in found["server_restarted"].evidence
    assert "between 1.0 s and" in found["server_restarted"].evidence
    assert "foreign_traffic" not in found


def test_counters_with_gaps_are_not_called_whole() -> None:
    """A counter that had no number in between is named where a page that could not be read is told."""
    records = closed_loop()
    before, after = around(records, generation_tokens=1200)
    gap = page(1, sample(gaps=("generation_tokens",)))
    found = findings(records, scrapes=(before, gap, unread(1.5, fault="HTTP 500"), after))["scrape_failed"]
    assert found.severity == "info"
    assert "Counters are whole" not in found.advice
    assert "no number in 1 of 3 readings: generation_tokens" in found.advice


def test_a_page_that_could_not_be_read() -> None:
    """In the middle it is an information; at an end, or always, what rests on the counters is missing."""
    records = closed_loop()
    before, after = around(records, generation_tokens=1200)
    broken = unread(1, fault="HTTP 500")
    found = findings(records, scrapes=(before, broken, after))["scrape_failed"]
    assert (found.severity, "1 of 3" in found.evidence, "HTTP 500" in found.evidence) == ("info", True, True)
    assert "Counters are whole" in found.advice
    for scrapes in ((before, broken), (broken,), (before,), (after,)):
        assert findings(records, scrapes=scrapes)["scrape_failed"].severity == "warning"
    assert "scrape_failed" not in findings(records, scrapes=(before, after))
    assert "scrape_failed" not in findings(records)


def test_preemptions() -> None:
    """A few are told; more than one in a hundred requests is a warning."""
    records = closed_loop()
    few = findings(records, scrapes=around(records, preemptions=1))["preemptions"]
    assert (few.severity, "1 times" in few.evidence) == ("info", True)
    assert findings(records, scrapes=around(records, preemptions=5))["preemptions"].severity == "warning"
    assert "preemptions" not in findings(records, scrapes=around(records, preemptions=0))


def test_a_verifier_that_is_not_exact() -> None:
    """Named by its setting; a server that is exact, or says nothing, gets no such finding."""
    loose = {"speculation": {"method": "EAGLE", "lossy": ["speculative_accept_threshold_single=0.9"]}}
    found = findings(closed_loop(), server=loose)["lossy_verifier"]
    assert "speculative_accept_threshold_single=0.9" in found.evidence
    for told in ({}, {"speculation": None}, {"speculation": {"lossy": []}}, {"speculation": {"lossy": None}}):
        assert "lossy_verifier" not in findings(closed_loop(), server=told)


def test_acceptance_that_is_made_up() -> None:
    """With its length where it is known."""
    told = {"speculation": {"method": "eagle3", "forced": True, "forced_acceptance_length": 2.5}}
    found = findings(closed_loop(), server=told)["forced_acceptance"]
    assert (found.severity, "2.5 tokens a step" in found.evidence) == ("info", True)
    assert "forced_acceptance" not in findings(closed_loop(), server={"speculation": {"forced": False}})


def test_prefix_cache_hits_of_this_run() -> None:
    """Half of the input tokens were cached: repeated prompts; expected in conversations."""
    found = findings(closed_loop(cached_input_tokens=50))["prefix_cache"]
    assert found.severity == "warning"
    assert "6000 of 12000 input tokens" in found.evidence
    talk = findings(closed_loop(cached_input_tokens=50, session_id="s", turn=1))["prefix_cache"]
    assert talk.severity == "info"
    assert "prefix_cache" not in findings(closed_loop(cached_input_tokens=10))
    unique = closed_loop(cached_input_tokens=0)
    others = around(unique, prefix_query_tokens=1000, prefix_hit_tokens=930)
    assert "prefix_cache" not in findings(unique, scrapes=others), "what others found in it is not ours"


def test_acceptance_on_invented_text_says_nothing() -> None:
    """Said only where acceptance is shown."""
    drafted = closed_loop(
        speculation=RequestSpeculation(steps=4, drafted_tokens=12, accepted_tokens=6, histogram=(1, 1, 1, 1))
    )
    assert "invented_text" in findings(drafted, data={"text": "invented"})
    assert "invented_text" not in findings(drafted, data={"text": "real"})
    assert "invented_text" not in findings(closed_loop(), data={"text": "invented"})


def test_connections_opened_during_the_run() -> None:
    """TTFT holds the opening of a connection."""
    assert "120 of 120 requests" in findings(closed_loop(connect_ns=MS))["connections_opened"].evidence
    assert "connections_opened" not in findings([*closed_loop(119), answered(500, sent_ms=281 * 119, connect_ns=MS)])


def test_interrupted_and_killed_runs_say_so() -> None:
    """Ended by a signal, or without an end and with requests that have no record."""
    stopped = findings(closed_loop(), interrupted=True, ended_by="interrupt")["interrupted"]
    assert stopped.evidence == "The run ended by interrupt."
    killed = findings(closed_loop(), planned=150, interrupted=None, ended_by=None)["interrupted"]
    assert killed.evidence == "The run was killed before its end; 30 planned requests have no record."


def test_findings_speak_plainly() -> None:
    """Every text is a sentence or more, without an unformatted number."""
    records = [failed(seq, sent_ms=100 * seq) for seq in range(5)]
    for finding in summarised(records, planned=9, interrupted=True).verdict.findings:
        for text in (finding.evidence, finding.advice):
            assert text[0].isupper() or text[0].isdigit()
            assert text.endswith(".") or finding.kind == "same_error"
            assert not re.search(r"\d\.\d{5}", text)
