"""Results of AIPerf (`profile_export_aiperf.json`)."""

from typing import Any

from loadgen.adapters.imports.values import at, number, quantity, share, time_s, whole
from loadgen.core.comparison.side import Side
from loadgen.core.run import Load, LoadMode

TOOL = "AIPerf"

_LATENCIES = {
    "ttft_s": "time_to_first_token",
    "ttfo_s": "time_to_first_output_token",
    "tpot_s": "inter_token_latency",
    "icl_s": "inter_chunk_latency",
    "e2el_s": "request_latency",
}
_STATISTICS = {"mean": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
_RATES = {"requests_per_s": "request_throughput", "output_tokens_per_s": "output_token_throughput"}
_PER_SECOND = ("/s", "/sec")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_WHOLE_RUN = "AIPerf divides by the whole run, from the first request to the last response"
_OTHERWISE = {
    "tpot_s": "what AIPerf calls ITL: (latency - TTFT) / (tokens - 1) of each request",
    "e2el_s": "AIPerf ends it with the last response that it parsed",
    "requests_per_s": _WHOLE_RUN,
    "output_tokens_per_s": f"{_WHOLE_RUN}, and counts the tokens of completed requests",
    "goodput_rps": f"{_WHOLE_RUN}, and has objectives of its own",
}


def sides_of(value: Any) -> tuple[Side, ...] | None:
    """The one run of a result; None for what is no such result."""
    if not isinstance(at(value, "request_latency"), dict) or not isinstance(at(value, "request_throughput"), dict):
        return None
    load = _load(at(value, "input_config", "loadgen"))
    values = {
        f"{name}.{statistic}": time_s(value, key, theirs, factor=_SECONDS.get(str(at(value, key, "unit"))))
        for name, key in _LATENCIES.items()
        for statistic, theirs in _STATISTICS.items()
    }
    values |= {name: _rate(value, key) for name, key in _RATES.items()}
    values["goodput_rps"] = _rate(value, "goodput")
    values["error_ratio"] = _error_ratio(value)
    told = {
        "load.mode": load.mode,
        "load.concurrency": load.concurrency,
        "load.request_rate_rps": load.request_rate_rps,
    }
    known = any(part is not None for part in (load.concurrency, load.request_rate_rps))
    return (Side(tool=TOOL, load=load, values=values, otherwise=_OTHERWISE, workload=told if known else {}),)


def _load(told: Any) -> Load:
    rate, concurrency = number(at(told, "request_rate")), whole(at(told, "concurrency"))
    if rate is not None:
        return Load(mode=LoadMode.RATE, request_rate_rps=rate, max_concurrency=concurrency)
    return Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency)


def _rate(value: Any, key: str) -> float | None:
    """A number a second, by its unit."""
    return quantity(value, key, "avg") if str(at(value, key, "unit")).endswith(_PER_SECOND) else None


def _error_ratio(value: dict[str, Any]) -> float | None:
    """`error_request_count` is null when there was no error; `request_count` counts what succeeded."""
    completed = quantity(value, "request_count", "avg")
    failed = quantity(value, "error_request_count", "avg") or 0.0
    return None if completed is None else share(failed, completed + failed)
