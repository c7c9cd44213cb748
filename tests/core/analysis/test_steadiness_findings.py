"""Doubts whether a run was steady and long enough: on the run that deserves them, and not on the one that does not."""

import re
from dataclasses import replace

import numpy as np

from loadgen.core.record import RequestRecord
from tests.core.analysis.factory import (
    MS,
    answered,
    arrivals,
    closed_loop,
    findings,
    open_loop,
    window,
)


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
