"""Totals of records as count arrays: what a worker has counted, in a form that adds up exactly."""

from dataclasses import dataclass

from loadgen.core.metrics.totals import Length, Timing, Totals
from loadgen.core.record import FailureKind, Outcome
from loadgen.core.stats.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedHistogram:
    """The counts of a `Histogram`, whose bounds everybody knows."""

    counts: list[int]
    native: dict[int, int]
    zeros: int
    sum: float

    @classmethod
    def of(cls, histogram: Histogram) -> "CountedHistogram":
        """Without its exemplars."""
        return cls(counts=histogram.counts, native=histogram.native, zeros=histogram.zeros, sum=histogram.sum)

    def fill(self, histogram: Histogram) -> None:
        """Puts the counts into an empty one."""
        histogram.counts, histogram.native = list(self.counts), dict(self.native)
        histogram.zeros, histogram.sum = self.zeros, self.sum


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTotals:
    """The counts of a `Totals`."""

    outcomes: dict[Outcome, int]
    failures: dict[FailureKind, int]
    timings: dict[Timing, CountedHistogram]
    lengths: dict[Length, CountedHistogram]
    warmup: int
    sent: int
    input_tokens: int
    output_tokens: int

    @classmethod
    def of(cls, totals: Totals) -> "CountedTotals":
        """What there is now; exemplars stay behind."""
        return cls(
            outcomes=totals.outcomes,
            failures={kind: count for kind, count in totals.failures.items() if count},
            timings={timing: CountedHistogram.of(histogram) for timing, histogram in totals.timings.items()},
            lengths={length: CountedHistogram.of(histogram) for length, histogram in totals.lengths.items()},
            warmup=totals.warmup,
            sent=totals.sent,
            input_tokens=totals.input_tokens,
            output_tokens=totals.output_tokens,
        )

    def totals(self) -> Totals:
        """The same again, to be added to others."""
        totals = Totals()
        totals.outcomes.update(self.outcomes)
        totals.failures.update(self.failures)
        totals.warmup, totals.sent = self.warmup, self.sent
        totals.input_tokens, totals.output_tokens = self.input_tokens, self.output_tokens
        for timing, counted in self.timings.items():
            counted.fill(totals.timings[timing])
        for length, counted in self.lengths.items():
            counted.fill(totals.lengths[length])
        return totals
