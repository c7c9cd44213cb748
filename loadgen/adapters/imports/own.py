"""Summaries of ours, which somebody may have edited or a broken disk changed."""

from typing import Any

from loadgen.adapters.imports.values import ImpossibleFigureError, at, fraction, quantity, time_s
from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.comparison.metric_pair import LATENCIES

_OF_LATENCY = ("mean", "min", "max", "p50", "p75", "p90", "p95", "p99", "p99_9")
_QUANTITIES = (
    *(("requests", name) for name in ("planned", "sent", "completed", "failed", "cancelled", "dropped")),
    *(("throughput", name) for name in ("requests_per_s", "output_tokens_per_s", "input_tokens_per_s")),
    *(("throughput", "goodput_rps"), ("speculation", "acceptance_length"), ("speculation", "tokens_per_step")),
    *(("load", "concurrency"), ("load", "request_rate_rps"), ("server", "preemptions"), ("server", "scrapes")),
    ("server", "kv_used_ratio", "peak"),
)
_FRACTIONS = (
    *(("slo", "attainment_ratio"), ("speculation", "acceptance_ratio")),
    *(("server", "request_times", name) for name in ("queue_ratio", "prefill_ratio", "decode_ratio")),
)
_SEVERITIES = tuple(severity.value for severity in Severity)


def check_summary(value: Any, *above: str | int) -> None:
    """Raises ImpossibleFigureError for what no run can have come to in the summary under the keys."""
    for name in LATENCIES:
        for statistic in _OF_LATENCY:
            time_s(value, *above, "latency", name, statistic, factor=1)
    for keys in _QUANTITIES:
        quantity(value, *above, *keys)
    for keys in _FRACTIONS:
        fraction(value, *above, *keys)
    findings = at(value, *above, "verdict", "findings")
    for place, finding in enumerate(findings if isinstance(findings, list | tuple) else ()):
        severity = at(finding, "severity")
        if isinstance(severity, str) and severity not in _SEVERITIES:
            where = (*above, "verdict", "findings", place, "severity")
            raise ImpossibleFigureError(where, f"one of {', '.join(_SEVERITIES)}", severity)
