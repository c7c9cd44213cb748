"""What the records of runs come to so far, as counts and histograms that only ever grow: for whoever looks meanwhile.

The populations are those of the summary: latencies are of measured requests that completed, schedule lag is of measured
requests that were sent, and warm-up is counted apart.
"""

from collections.abc import Iterable
from enum import StrEnum

import numpy as np

from loadgen.core.metrics.per_request import e2el_s, is_streamed, output_tokens, schedule_lag_s, tpot_s, ttft_s
from loadgen.core.record import FailureKind, Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.core.stats.histogram import Exemplar, Histogram, geometric_bounds
from loadgen.core.units import NS_PER_S


class Timing(StrEnum):
    """What there is a histogram of, in seconds."""

    TTFT = "time_to_first_token"
    TPOT = "time_per_output_token"
    ICL = "inter_chunk_latency"
    DURATION = "request_duration"
    LAG = "schedule_lag"


class Length(StrEnum):
    """What there is a histogram of, in tokens of a request."""

    INPUT = "request_input_tokens"
    OUTPUT = "request_output_tokens"


_GAPS = geometric_bounds(0.0002, 5.0)
BOUNDS = {
    Timing.TTFT: geometric_bounds(0.001, 120.0),
    Timing.TPOT: _GAPS,
    Timing.ICL: _GAPS,
    Timing.DURATION: geometric_bounds(0.001, 600.0),
    Timing.LAG: geometric_bounds(0.0001, 120.0),
}
"""Upper bounds of the classic buckets, s: first tokens and answers from 1 ms, gaps from 0.2 ms, lag from 0.1 ms."""

TOKEN_BOUNDS = tuple(float(2**power) for power in range(21))
"""Upper bounds of the classic buckets of lengths: powers of two from 1 to a million tokens."""

_OF_COMPLETED = {Timing.TTFT: ttft_s, Timing.TPOT: tpot_s, Timing.DURATION: e2el_s}


class Totals:
    """Takes records in batches, whenever there is time for it."""

    def __init__(self) -> None:
        self.outcomes = dict.fromkeys(Outcome, 0)
        self.failures = dict.fromkeys(FailureKind, 0)
        self.warmup = self.sent = 0
        self.input_tokens = self.output_tokens = 0
        self.timings = {timing: Histogram(bounds) for timing, bounds in BOUNDS.items()}
        self.lengths = {length: Histogram(TOKEN_BOUNDS) for length in Length}

    def observe(self, records: Iterable[RequestRecord], *, origin_unix_ns: int) -> None:
        """Adds records of one run, whose axis has its zero at that instant."""
        values: dict[Timing, list[float]] = {timing: [] for timing in Timing}
        lengths: dict[Length, list[float]] = {length: [] for length in Length}
        gaps = []
        for record in records:
            if record.phase is not Phase.MEASURE:
                self.warmup += 1
                continue
            self._count(record)
            found = _values_of(record)
            if record.outcome is Outcome.COMPLETED and is_streamed(record) and len(record.event_ns) > 1:
                gaps.append(np.diff(np.array(record.event_ns, dtype=np.int64)) / NS_PER_S)
                found[Timing.ICL] = float(gaps[-1].max())
            for timing, value in found.items():
                if timing is not Timing.ICL:
                    values[timing].append(value)
                self.timings[timing].mark(_exemplar(record, value, origin_unix_ns))
            for length, tokens in _lengths_of(record).items():
                lengths[length].append(tokens)
                self.lengths[length].mark(_exemplar(record, tokens, origin_unix_ns))
        for timing, taken in values.items():
            self.timings[timing].observe(np.array(taken, dtype=np.float64))
        for length, taken in lengths.items():
            self.lengths[length].observe(np.array(taken, dtype=np.float64))
        if gaps:
            self.timings[Timing.ICL].observe(np.concatenate(gaps))

    def add(self, other: "Totals") -> None:
        """Adds what others have counted; exemplars stay behind."""
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] += count
        for kind, count in other.failures.items():
            self.failures[kind] += count
        self.warmup += other.warmup
        self.sent += other.sent
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        for timing, histogram in other.timings.items():
            self.timings[timing].add(histogram)
        for length, histogram in other.lengths.items():
            self.lengths[length].add(histogram)

    def as_counted(self) -> "Totals":
        """As they are now, with classic buckets alone."""
        copied = Totals()
        copied.outcomes, copied.failures = dict(self.outcomes), dict(self.failures)
        copied.warmup, copied.sent = self.warmup, self.sent
        copied.input_tokens, copied.output_tokens = self.input_tokens, self.output_tokens
        copied.timings = {timing: histogram.as_counted() for timing, histogram in self.timings.items()}
        copied.lengths = {length: histogram.as_counted() for length, histogram in self.lengths.items()}
        return copied

    def _count(self, record: RequestRecord) -> None:
        self.outcomes[record.outcome] += 1
        self.sent += record.sent_ns is not None
        if record.failure is not None:
            self.failures[record.failure.kind] += 1
        if record.outcome is Outcome.COMPLETED:
            self.input_tokens += record.input_tokens or 0
            self.output_tokens += output_tokens(record) or 0


def ended_ns(record: RequestRecord) -> int:
    """When a record came to be: the end of its exchange, else when it was due."""
    return next((at for at in (record.closed_ns, record.sent_ns, record.due_ns) if at is not None), 0)


def _values_of(record: RequestRecord) -> dict[Timing, float]:
    """Values that a request has one of; what was not measured is not observed."""
    found = {Timing.LAG: schedule_lag_s(record)}
    if record.outcome is Outcome.COMPLETED:
        found |= {timing: metric(record) for timing, metric in _OF_COMPLETED.items()}
    return {timing: max(value, 0.0) for timing, value in found.items() if value is not None}


def _lengths_of(record: RequestRecord) -> dict[Length, float]:
    """Tokens of a completed request, where they were counted."""
    if record.outcome is not Outcome.COMPLETED:
        return {}
    found = {Length.INPUT: record.input_tokens, Length.OUTPUT: output_tokens(record)}
    return {length: float(tokens) for length, tokens in found.items() if tokens is not None}


def _exemplar(record: RequestRecord, value: float, origin_unix_ns: int) -> Exemplar:
    return Exemplar(value=value, request_id=record.request_id, unix_s=(origin_unix_ns + ended_ns(record)) / NS_PER_S)
