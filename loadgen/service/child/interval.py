"""What happened between two looks at the live metrics: rates, and quantiles of what ended meanwhile."""

from collections.abc import Iterable, Sequence
from typing import Any

from loadgen.adapters.prometheus.families import OUTPUT, REQUESTS, TIMINGS, Family
from loadgen.core.metrics.totals import Timing
from loadgen.core.stats.histogram import Histogram

_TOLD = {Timing.TTFT: "ttft_s", Timing.TPOT: "tpot_s", Timing.DURATION: "e2el_s"}
_QUANTILES = {"p50": 0.5, "p99": 0.99}
_FEWEST = {"p50": 1, "p99": 20}


class Intervals:
    """Keeps what counters stood at when they were last looked at."""

    def __init__(self) -> None:
        self._counts: dict[str, list[int]] = {}
        self._numbers: dict[str, float] = {}

    def since_last(self, families: Iterable[Family], elapsed_s: float) -> dict[str, Any]:
        """Rates a second, and latencies in seconds read off classic buckets, None where too few requests ended."""
        by_name = {family.name: family for family in families}
        told: dict[str, Any] = {
            "requests_per_s": self._rate(by_name.get(REQUESTS.name), elapsed_s, outcome="completed"),
            "output_tokens_per_s": self._rate(by_name.get(OUTPUT.name), elapsed_s),
        }
        for timing, name in _TOLD.items():
            told[name] = self._quantiles(by_name.get(TIMINGS[timing].name))
        return told

    def _rate(self, family: Family | None, elapsed_s: float, **labels: str) -> float | None:
        if family is None or elapsed_s <= 0:
            return None
        total = sum(
            series.value
            for series in family.series
            if not isinstance(series.value, Histogram) and labels.items() <= series.labels.items()
        )
        before, self._numbers[family.name] = self._numbers.get(family.name, 0.0), total
        return (total - before) / elapsed_s

    def _quantiles(self, family: Family | None) -> dict[str, float | None]:
        if family is None:
            return dict.fromkeys(_QUANTILES)
        histograms = [series.value for series in family.series if isinstance(series.value, Histogram)]
        counts = [sum(each) for each in zip(*(histogram.counts for histogram in histograms), strict=True)]
        before, self._counts[family.name] = self._counts.get(family.name, [0] * len(counts)), counts
        ended = [now - then for now, then in zip(counts, before, strict=True)]
        return {
            name: None if sum(ended) < _FEWEST[name] else bucket_quantile(histograms[0].bounds, ended, share)
            for name, share in _QUANTILES.items()
        }


def bucket_quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float:
    """The quantile by straight lines within buckets, as Prometheus has it; the last bound of what lies beyond."""
    wanted, seen = share * sum(counts), 0
    for place, count in enumerate(counts[:-1]):
        if count and seen + count >= wanted:
            low = bounds[place - 1] if place else 0.0
            return low + (bounds[place] - low) * (wanted - seen) / count
        seen += count
    return bounds[-1]
