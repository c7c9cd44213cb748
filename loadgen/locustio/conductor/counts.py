"""Totals of requests as numbers that can be sent and subtracted."""

from typing import Any

from loadgen.core.metrics.totals import Timing, Totals

Counts = dict[str, Any]


def counted(totals: Totals) -> Counts:
    """What was counted: outcomes, failures by kind, tokens, and of each timing the values by native bucket (s)."""
    return {
        "outcomes": {outcome.value: count for outcome, count in totals.outcomes.items() if count},
        "failures": {kind.value: count for kind, count in totals.failures.items() if count},
        "output_tokens": totals.output_tokens,
        "timings": {
            timing.value: {
                "count": totals.timings[timing].count,
                "sum_s": totals.timings[timing].sum,
                "buckets": {"zeros": totals.timings[timing].zeros}
                | {str(exponent): count for exponent, count in totals.timings[timing].native.items()},
            }
            for timing in Timing
        },
    }


def since(before: Any, now: Any) -> Any:
    """What was counted between two moments; what did not grow is left out."""
    if not isinstance(now, dict):
        return now - (before or 0)
    grown = {name: since((before or {}).get(name), value) for name, value in now.items()}
    return {name: value for name, value in grown.items() if value}
