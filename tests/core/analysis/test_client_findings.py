"""Doubts about the client: on the run that deserves them, and not on the one that does not."""

import re

from tests.core.analysis.factory import (
    MS,
    S,
    answered,
    arrivals,
    client,
    closed_loop,
    findings,
    open_loop,
    unsent,
    window,
)


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


def test_connections_opened_during_the_run() -> None:
    """TTFT holds the opening of a connection."""
    assert "120 of 120 requests" in findings(closed_loop(connect_ns=MS))["connections_opened"].evidence
    assert "connections_opened" not in findings([*closed_loop(119), answered(500, sent_ms=281 * 119, connect_ns=MS)])
