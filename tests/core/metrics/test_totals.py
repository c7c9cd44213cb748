"""What records come to: the populations are those of the summary."""

from dataclasses import replace

import pytest

from loadgen.core.metrics.totals import Length, Timing, Totals
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord
from loadgen.core.request import Phase
from tests.core.analysis.factory import answered, failed, unsent


def totals_of(*records: RequestRecord) -> Totals:
    """Totals of one run whose axis began a second after 1970."""
    totals = Totals()
    totals.observe(records, origin_unix_ns=10**9)
    return totals


def test_latencies_are_of_completed_requests() -> None:
    """What failed has none; how late it was sent counts all the same."""
    totals = totals_of(answered(0, lag_ms=3, ttft_ms=100, gap_ms=20, tokens=6), failed(1))
    assert totals.outcomes == {Outcome.COMPLETED: 1, Outcome.FAILED: 1, Outcome.CANCELLED: 0, Outcome.DROPPED: 0}
    counts = {timing: histogram.count for timing, histogram in totals.timings.items()}
    assert counts == {Timing.TTFT: 1, Timing.TPOT: 1, Timing.ICL: 5, Timing.DURATION: 1, Timing.LAG: counts[Timing.LAG]}
    sums = {timing: histogram.sum for timing, histogram in totals.timings.items()}
    assert sums[Timing.TTFT] == pytest.approx(0.1)
    assert sums[Timing.TPOT] == pytest.approx(0.02)
    assert sums[Timing.ICL] == pytest.approx(0.1)
    assert sums[Timing.DURATION] == pytest.approx(0.2)
    assert totals.output_tokens == 6


def test_lengths_are_of_completed_requests_whose_tokens_were_counted() -> None:
    """One value a request; what nobody counted is not a length of 0."""
    told, untold = replace(answered(0, tokens=6), input_tokens=300), replace(answered(1, tokens=6), input_tokens=None)
    totals = totals_of(told, untold, failed(2))
    assert {length: histogram.count for length, histogram in totals.lengths.items()} == {
        Length.INPUT: 1,
        Length.OUTPUT: 2,
    }
    assert (totals.lengths[Length.INPUT].sum, totals.lengths[Length.OUTPUT].sum) == (300, 12)
    (example,) = totals.lengths[Length.INPUT].exemplars.values()
    assert (example.value, example.request_id) == (300, told.request_id)


def test_a_stream_that_broke_off_has_no_latency() -> None:
    """It had a first token, and would make a fast answer of a failed one."""
    totals = totals_of(replace(answered(0), outcome=Outcome.FAILED, failure=Failure(kind=FailureKind.TRUNCATED)))
    assert totals.failures[FailureKind.TRUNCATED] == 1
    assert all(histogram.count == 0 for histogram in totals.timings.values())
    assert totals.output_tokens == 0


def test_failures_are_counted_by_kind() -> None:
    """Each kind is there, also those that never came."""
    record = failed(0)
    assert record.failure is not None
    totals = totals_of(record)
    assert totals.failures == {kind: int(kind is record.failure.kind) for kind in FailureKind}


def test_what_was_never_sent_has_no_latency() -> None:
    """A dropped request is counted, and observed nowhere: a zero would pull means down."""
    totals = totals_of(unsent(0))
    assert (totals.outcomes[Outcome.DROPPED], totals.sent) == (1, 0)
    assert all(histogram.count == 0 for histogram in totals.timings.values())


def test_totals_add_up() -> None:
    """Those of two halves come to those of the whole, by number and by bucket."""
    records = [answered(0, lag_ms=3), failed(1), unsent(2), replace(answered(3), phase=Phase.WARMUP), answered(4)]
    halves, whole = totals_of(*records[:2]), totals_of(*records)
    halves.add(totals_of(*records[2:]))
    for name in ("outcomes", "failures", "warmup", "sent", "input_tokens", "output_tokens"):
        assert getattr(halves, name) == getattr(halves.as_counted(), name) == getattr(whole, name), name
    for timing, histogram in whole.timings.items():
        assert halves.timings[timing].counts == halves.as_counted().timings[timing].counts == histogram.counts
    for length, histogram in whole.lengths.items():
        assert halves.lengths[length].counts == halves.as_counted().lengths[length].counts == histogram.counts


def test_warm_up_is_apart() -> None:
    """It is counted once and measured nowhere."""
    totals = totals_of(replace(answered(0), phase=Phase.WARMUP))
    assert (totals.warmup, totals.sent, totals.output_tokens) == (1, 0, 0)
    assert all(histogram.count == 0 for histogram in totals.timings.values())


def test_the_example_of_gaps_is_the_longest_of_its_request() -> None:
    """With the request that it belongs to, and wall time of its end."""
    record = answered(7, ttft_ms=100, gap_ms=20, tokens=3)
    assert record.event_ns is not None
    assert record.closed_ns is not None
    stretched = replace(record, event_ns=(*record.event_ns[:-1], record.event_ns[-1] + 50_000_000))
    (example,) = totals_of(stretched).timings[Timing.ICL].exemplars.values()
    assert example.value == pytest.approx(0.07)
    assert example.request_id == record.request_id
    assert example.unix_s == pytest.approx(1 + record.closed_ns / 1e9)
