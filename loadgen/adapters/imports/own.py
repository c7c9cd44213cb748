"""Summaries of ours, which somebody may have edited or a broken disk changed."""

from typing import Any

from loadgen.adapters.imports.values import fraction, quantity, time_s
from loadgen.core.comparison.metric_pair import LATENCIES

_OF_LATENCY = ("mean", "min", "max", "p50", "p75", "p90", "p95", "p99", "p99_9")
_QUANTITIES = (
    *(("requests", name) for name in ("planned", "sent", "completed", "failed", "cancelled", "dropped")),
    *(("throughput", name) for name in ("requests_per_s", "output_tokens_per_s", "input_tokens_per_s")),
    *(("throughput", "goodput_rps"), ("speculation", "acceptance_length"), ("speculation", "tokens_per_step")),
)
_FRACTIONS = (("slo", "attainment_ratio"), ("speculation", "acceptance_ratio"))


def check_summary(value: Any, *above: str | int) -> None:
    """Raises ImpossibleFigureError for a figure of the summary under the keys that no run can have come to."""
    for name in LATENCIES:
        for statistic in _OF_LATENCY:
            time_s(value, *above, "latency", name, statistic, factor=1)
    for keys in _QUANTITIES:
        quantity(value, *above, *keys)
    for keys in _FRACTIONS:
        fraction(value, *above, *keys)
