"""Properties of percentiles, concurrency, acceptance and whole summaries over generated input."""

import json
import math
from dataclasses import asdict, replace
from itertools import accumulate
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.analysis.analyse import analyse
from loadgen.core.metrics.distribution import curve, distribution, error_adjusted
from loadgen.core.metrics.slo import SLO_METRICS, parse_slo
from loadgen.core.metrics.summary import Distribution, Summary
from loadgen.core.record import Failure, FailureKind, Outcome, RequestRecord, RequestSpeculation, TokenSource
from loadgen.core.request import Phase
from loadgen.core.speculation.acceptance import Acceptance, from_step_tokens, pooled
from loadgen.core.stats.intervals import InFlight
from loadgen.core.stats.quantiles import PERCENTILES, quantile
from loadgen.core.stats.sample import Sample, merged
from tests.core.analysis.factory import MS, manifest

values = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=300)
shares = st.floats(0.0, 1.0)
histograms = st.lists(st.integers(0, 50), min_size=1, max_size=8).map(tuple)


def ascending(numbers: list[float]) -> np.ndarray:
    return np.sort(np.array(numbers))


def given_percentiles(found: Distribution) -> list[float]:
    return [value for name in PERCENTILES if (value := getattr(found, name)) is not None]


@given(values, shares)
def test_quantile_is_numpys_linear(numbers: list[float], share: float) -> None:
    """The estimator that the reports name."""
    expected = float(np.quantile(np.array(numbers), share))
    assert quantile(ascending(numbers), share) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(values)
def test_percentiles_ascend_within_min_and_max(numbers: list[float]) -> None:
    """No percentile lies above the maximum, below the minimum or out of order, and neither does the mean."""
    found = distribution(ascending(numbers), missing=0)
    assert found.min is not None
    assert found.max is not None
    assert found.mean is not None
    ladder = given_percentiles(found)
    assert ladder == sorted(ladder)
    assert found.min <= ladder[0] <= ladder[-1] <= found.max
    assert found.min <= found.mean <= found.max
    assert (found.min, found.max) == (min(numbers), max(numbers))


@given(values, st.integers(0, 300))
def test_errors_never_lower_a_percentile_and_never_make_nan(numbers: list[float], errors: int) -> None:
    """With failures as infinitely late requests every percentile rises or is gone."""
    plain = distribution(ascending(numbers), missing=0)
    adjusted = error_adjusted(ascending(numbers), errors=errors, missing=0)
    assert adjusted.n == len(numbers) + errors
    for name in PERCENTILES:
        before, after = getattr(plain, name), getattr(adjusted, name)
        assert after is None or math.isfinite(after)
        if before is not None and after is not None:
            assert after >= before


@given(st.lists(st.lists(st.integers(0, 2**24), max_size=50), min_size=1, max_size=5))
def test_merged_samples_are_all_samples_together(parts: list[list[int]]) -> None:
    """Samples of workers, merged, are the sample of one process that saw everything."""
    together, workers = Sample(), []
    for part in parts:
        worker = Sample()
        for sample in (worker, together):
            sample.extend(np.array(part, dtype=np.int64))
        workers.append(worker.ascending())
    both = workers[0]
    for worker_values in workers[1:]:
        both = merged(both, worker_values)
    assert both.tolist() == together.ascending().tolist() == sorted(value for part in parts for value in part)


@given(values)
def test_curve_points_are_quantiles_in_order(numbers: list[float]) -> None:
    """What is drawn agrees with what is printed."""
    points = curve(ascending(numbers))
    assert points is not None
    assert list(points.p) == sorted(points.p)
    assert list(points.value_s) == sorted(points.value_s)
    assert points.value_s[-1] == max(numbers)


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), max_size=60))
def test_concurrency_agrees_with_counting_at_every_instant(pairs: list[tuple[int, int]]) -> None:
    """The sweep's peak is the largest count over half-open intervals; the mean of the whole is their total length."""
    pairs = [(min(pair), max(pair)) for pair in pairs]
    flights = InFlight.of(
        np.array([start for start, _ in pairs], dtype=float), np.array([end for _, end in pairs], dtype=float)
    )
    counted = max((sum(start <= at < end for start, end in pairs) for at in range(1001)), default=0)
    assert flights.peak(0, 1001) == counted
    total = sum(end - start for start, end in pairs)
    assert flights.mean(0, 1001) == pytest.approx(total / 1001)


@given(st.integers(1, 12), st.lists(st.integers(1, 500), min_size=1, max_size=60))
def test_peak_concurrency_never_exceeds_the_slots(slots: int, services: list[int]) -> None:
    """A closed loop that fills a slot the instant it is free holds no more than its slots."""
    free, starts, ends = [0.0] * slots, [], []
    for service in services:
        slot = free.index(min(free))
        starts.append(free[slot])
        free[slot] += service
        ends.append(free[slot])
    flights = InFlight.of(np.array(starts), np.array(ends))
    assert flights.peak(0, max(ends)) == min(slots, len(services))


@given(histograms)
def test_acceptance_length_is_one_plus_the_sum_by_position(histogram: tuple[int, ...]) -> None:
    """For the drafts of a chain, survival by position sums to the accepted tokens of a step and never rises."""
    accepted = sum(place * count for place, count in enumerate(histogram))
    found = Acceptance(steps=sum(histogram), accepted_tokens=accepted, histogram=histogram)
    if found.length is None or found.by_position is None:
        assert sum(histogram) == 0
        return
    assert found.length == pytest.approx(1 + sum(found.by_position))
    assert list(found.by_position) == sorted(found.by_position, reverse=True)
    assert 1 <= found.length <= len(histogram)


@given(st.lists(histograms, min_size=1, max_size=5))
def test_pooled_acceptance_is_that_of_all_steps_together(parts: list[tuple[int, ...]]) -> None:
    """Sums of counts, in any order."""
    each = [
        Acceptance(
            steps=sum(part), accepted_tokens=sum(place * count for place, count in enumerate(part)), histogram=part
        )
        for part in parts
    ]
    together = pooled(each)
    assert together.steps == sum(sum(part) for part in parts)
    assert together == pooled(each[::-1])


@given(st.lists(st.integers(1, 9), max_size=50))
def test_steps_emit_what_they_accepted_and_a_token_of_their_own(step_tokens: list[int]) -> None:
    """accepted + steps is every token."""
    found = from_step_tokens(np.array(step_tokens, dtype=np.int64))
    assert (found.steps or 0) + (found.accepted_tokens or 0) == sum(step_tokens)


@given(st.dictionaries(st.sampled_from(SLO_METRICS), st.integers(1, 100_000), min_size=1), st.booleans())
def test_written_objectives_read_back(limits_ms: dict[str, int], short: bool) -> None:
    """Any set of objectives, with or without the unit in the name."""
    text = ",".join(f"{name.removesuffix('_s') if short else name}={limit}ms" for name, limit in limits_ms.items())
    assert parse_slo(text) == {name: pytest.approx(limit / 1000) for name, limit in limits_ms.items()}


_instants = st.none() | st.integers(0, 20_000 * MS)
_counts = st.none() | st.integers(0, 60)
_short = st.none() | st.integers(0, 100 * MS)
_events = st.lists(st.tuples(st.integers(0, 300 * MS), st.integers(1, 5)), max_size=12)
_fields = st.fixed_dictionaries(
    {
        "outcome": st.sampled_from(Outcome),
        "phase": st.sampled_from(Phase),
        "due_ns": _instants,
        "sent_ns": _instants,
        "output_tokens": _counts,
        "output_tokens_from": st.none() | st.sampled_from(TokenSource),
        "reasoning_tokens": _counts,
        "input_tokens": st.none() | st.integers(0, 1000),
        "cap_wait_ns": _short,
        "stamp_lag_ns": _short,
        "streamed": st.sampled_from((None, True, False)),
        "turn": st.none() | st.integers(0, 3),
        "speculation": st.none() | st.builds(RequestSpeculation, histogram=st.none() | histograms),
    }
)
_failures = st.builds(
    Failure, kind=st.sampled_from(FailureKind), http_status=st.sampled_from((None, 400, 500)), message=st.just("<&>")
)
"""Strategies are made once: to make one takes longer than to draw from it."""


@st.composite
def _record(draw: st.DrawFn) -> RequestRecord:
    fields = draw(_fields)
    if fields["outcome"] is Outcome.DROPPED:
        fields["sent_ns"] = None
    sent = fields["sent_ns"]
    events = [] if sent is None else draw(_events)
    stamps = tuple(accumulate((gap for gap, _ in events), initial=sent))[1:] if events else ()
    if sent is not None:
        fields["closed_ns"] = (stamps[-1] if stamps else sent) + draw(st.integers(0, 10 * MS))
    if stamps:
        fields |= {"first_ns": stamps[0], "last_ns": stamps[-1], "event_ns": stamps}
        fields["first_output_ns"] = draw(st.sampled_from((None, *stamps)))
    if draw(st.booleans()):
        fields["event_tokens"] = tuple(tokens for _, tokens in events)
    if fields["outcome"] is Outcome.FAILED:
        fields["failure"] = draw(_failures)
    return RequestRecord(seq=0, request_id="r", **fields)


@st.composite
def records(draw: st.DrawFn) -> list[RequestRecord]:
    """Up to thirty records of any phase, outcome and completeness that the record type allows."""
    made = draw(_some_records)
    return [replace(record, seq=seq, request_id=f"r{seq}") for seq, record in enumerate(made)]


_some_records = st.integers(0, 30).flatmap(lambda count: st.lists(_record(), min_size=count, max_size=count))


@settings(deadline=None, max_examples=60)
@given(records())
def test_any_records_make_a_strict_summary_that_reads_back(made: list[RequestRecord]) -> None:
    """No NaN, no infinity, no exception; the file gives the same values again."""
    summary = analyse(lambda: made, manifest(slo={"ttft_s": 0.2, "tpot_s": 0.05})).summary
    text = json.dumps(asdict(summary), allow_nan=False)
    assert msgspec.json.decode(text.encode(), type=Summary, strict=True) == summary
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Summary) == summary
    counts = summary.requests
    assert counts.planned == counts.completed + counts.failed + counts.cancelled + counts.dropped
    assert summary.concurrency.peak <= counts.sent + summary.warmup_requests


@settings(deadline=None, max_examples=60)
@given(records(), st.randoms(use_true_random=False))
def test_the_order_of_records_changes_no_count(made: list[RequestRecord], random: Any) -> None:
    """Records stand in the order in which requests ended; any other order counts the same."""
    shuffled = list(made)
    random.shuffle(shuffled)
    first = analyse(lambda: made, manifest()).summary
    second = analyse(lambda: shuffled, manifest()).summary
    assert first.requests == second.requests
    assert first.tokens == second.tokens
    assert first.latency.ttft_s.p50 == second.latency.ttft_s.p50
    assert first.latency.icl_s.n == second.latency.icl_s.n
    assert first.concurrency == second.concurrency
    assert first.window == second.window
