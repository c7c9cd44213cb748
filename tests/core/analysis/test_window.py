"""The window of a run that does not name one."""

from loadgen.core.request import Phase
from loadgen.core.run import Window
from tests.core.analysis.factory import S, answered, manifest, open_loop, summarised, unsent


def test_window_ends_with_the_last_start_so_that_the_drain_is_outside() -> None:
    """20 requests a second apart: from the first send to the last, not to the last close."""
    summary = summarised([answered(seq, sent_ms=1000 * (seq + 3), ttft_ms=5000) for seq in range(20)])
    assert summary.window is not None
    assert (summary.window.start_s, summary.window.end_s, summary.window.kind) == (3.0, 22.0, "until_last_send")


def test_an_open_loop_is_measured_over_its_arrivals() -> None:
    """Late sends of a capped loop do not stretch the span over which load was offered."""
    records = [
        answered(seq, sent_ms=200 * seq, lag_ms=100 * seq, cap_wait_ns=100_000_000 * seq, ttft_ms=50, tokens=1)
        for seq in range(41)
    ]
    summary = summarised(records, load=open_loop(max_concurrency=1))
    assert summary.window is not None
    assert summary.window.end_s == 4.0
    assert summary.rate.offered_rps == 10.0
    assert summary.rate.sent_rps == 5.0


def test_too_few_completions_make_the_whole_run_the_window() -> None:
    """All sent at once: nothing completes before the last send, so the window reaches to the last close."""
    summary = summarised([answered(seq, sent_ms=seq / 10, ttft_ms=1000) for seq in range(20)])
    assert summary.window is not None
    assert summary.window.kind == "whole"
    assert summary.window.end_s > 1.18
    assert summary.throughput.requests_per_s is not None
    assert summary.throughput.requests_per_s * summary.window.end_s == 20


def test_offered_rate_of_a_whole_window_leaves_the_drain_out() -> None:
    """Five arrivals a second apart are one a second, however long the last answer takes."""
    records = [answered(seq, sent_ms=1000 * seq, lag_ms=0, ttft_ms=10_000) for seq in range(6)]
    summary = summarised(records, load=open_loop())
    assert summary.window is not None
    assert summary.window.kind == "whole"
    assert summary.rate.offered_rps == 1.0
    assert summary.rate.sent_rps == 1.0


def test_warmup_does_not_open_the_window() -> None:
    """The window starts with the first measured request."""
    warm = [answered(seq, sent_ms=100 * seq, phase=Phase.WARMUP) for seq in range(10)]
    measured = [answered(10 + seq, sent_ms=2000 + 1000 * seq) for seq in range(20)]
    summary = summarised(warm + measured)
    assert summary.window is not None
    assert summary.window.start_s == 2.0
    assert summary.warmup_requests == 10
    assert summary.requests.planned == 20


def test_a_window_that_was_asked_for_stands() -> None:
    """The manifest's window is used as it is."""
    window = Window(start_ns=0, end_ns=10 * S, kind="duration")
    summary = summarised([answered(seq, sent_ms=500 * seq) for seq in range(40)], window=window)
    assert summary.window is not None
    assert (summary.window.end_s, summary.window.kind) == (10.0, "duration")
    assert summary.rate.sent_rps == 2.0


def test_nothing_due_has_no_window() -> None:
    """No window, hence no rates; nothing is divided by zero."""
    summary = summarised([unsent(0, due_ms=None)])
    assert summary.window is None
    assert summary.throughput.requests_per_s is None
    assert summary.concurrency.mean is None
    assert manifest().window is None


def test_the_window_ends_where_one_of_several_workers_had_nothing_left() -> None:
    """From there on the load was not whole; what was sent then is measured, but no part of rates."""
    records = [answered(seq, sent_ms=1000 * seq, ttft_ms=50) for seq in range(20)]
    window = summarised(records, exhausted_ns=15 * S + 1).window
    assert window is not None
    assert (window.start_s, window.end_s, window.kind) == (0.0, 15.000000001, "until_last_send")
    later = summarised(records, exhausted_ns=30 * S).window
    assert later is not None
    assert later.end_s == 19.0, "a drain is none of it either"
    early = summarised(records, exhausted_ns=2 * S).window
    assert early is not None
    assert early.kind == "whole", "too little completed until then"
    assert early.end_s > 19.0
