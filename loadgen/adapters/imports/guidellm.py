"""Reports of GuideLLM (`benchmarks.json`)."""

from typing import Any

from loadgen.adapters.imports.values import at, number, quantity, share, time_s, whole
from loadgen.core.comparison.metric_pair import STATISTICS
from loadgen.core.comparison.side import Side
from loadgen.core.run import Load, LoadMode

TOOL = "GuideLLM"

Keys = tuple[str | int, ...]

_LATENCIES = {
    "ttft_s": ("time_to_first_token_ms", 1e-3),
    "e2el_s": ("request_latency", 1.0),
    "guidellm.time_per_output_token_s": ("time_per_output_token_ms", 1e-3),
    "guidellm.inter_token_latency_s": ("inter_token_latency_ms", 1e-3),
}
_RATES = {"requests_per_s": "requests_per_second", "output_tokens_per_s": "output_tokens_per_second"}
_OTHERWISE = {
    "ttft_s": "GuideLLM gives 0 to a request without a token",
    "e2el_s": "GuideLLM ends it when the stream is drained, not with the last token",
    "requests_per_s": "GuideLLM takes the mean of its own series of rates",
    "output_tokens_per_s": "GuideLLM takes the mean of its own series of rates",
    "error_ratio": "GuideLLM counts requests that it cut off at the end as neither failed nor completed",
}


def sides_of(value: Any) -> tuple[Side, ...] | None:
    """The benchmarks of a report, one a level; None for what is no such report."""
    benchmarks = at(value, "benchmarks")
    if not isinstance(benchmarks, list) or not all(isinstance(at(each, "metrics"), dict) for each in benchmarks):
        return None
    return tuple(_side(value, place) for place in range(len(benchmarks)))


def _side(report: dict[str, Any], place: int) -> Side:
    metrics, load = ("benchmarks", place, "metrics"), _load(at(report, "benchmarks", place))
    values = {
        f"{name}.{statistic}": _statistic(report, (*metrics, key, "successful"), statistic, factor)
        for name, (key, factor) in _LATENCIES.items()
        for statistic in STATISTICS
    }
    values |= {name: quantity(report, *metrics, key, "successful", "mean") for name, key in _RATES.items()}
    values["error_ratio"] = _error_ratio(report, (*metrics, "request_totals"))
    told = {
        "load.mode": load.mode,
        "load.concurrency": load.concurrency,
        "load.request_rate_rps": load.request_rate_rps,
    }
    return Side(tool=TOOL, load=load, values=values, otherwise=_OTHERWISE, workload=told)


def _statistic(report: dict[str, Any], of: Keys, statistic: str, factor: float) -> float | None:
    """Zero is what the tool gives where nothing had a value; percentiles stand in an object of their own."""
    keys = (*of, "mean") if statistic == "mean" else (*of, "percentiles", statistic)
    return time_s(report, *keys, factor=factor) or None


def _load(benchmark: dict[str, Any]) -> Load:
    """By its strategy, under `config` since 0.4 and `args` before."""
    strategy = at(benchmark, "config", "strategy") or at(benchmark, "args", "strategy")
    kind, rate = at(strategy, "type_") or at(strategy, "kind"), number(at(strategy, "rate"))
    streams = whole(at(strategy, "streams")) or whole(at(strategy, "max_concurrency"))
    if kind in ("constant", "poisson") and rate is not None:
        return Load(mode=LoadMode.RATE, request_rate_rps=rate)
    return Load(mode=LoadMode.CONCURRENCY, concurrency=1 if kind == "synchronous" else streams)


def _error_ratio(report: dict[str, Any], totals: Keys) -> float | None:
    failed, completed = quantity(report, *totals, "errored"), quantity(report, *totals, "successful")
    return None if failed is None or completed is None else share(failed, failed + completed)
