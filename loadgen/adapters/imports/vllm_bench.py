"""Results of `vllm bench serve --save-result`, and of this tool's export in that format."""

from typing import Any

from loadgen.adapters.imports.values import fraction, number, quantity, share, time_s, whole
from loadgen.core.comparison.side import Side
from loadgen.core.comparison.workload import load_settings
from loadgen.core.run import Load, LoadMode

TOOL = "vllm bench serve"

_LATENCIES = {"ttft_s": "ttft", "tpot_s": "tpot", "icl_s": "itl", "e2el_s": "e2el"}
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_TOLD = tuple(f"load.{name}" for name in ("mode", "concurrency", "request_rate_rps", "num_requests"))
_WHOLE_RUN = "vllm bench serve divides by the whole run, from the first request to the end of the last"
_OTHERWISE = {
    "requests_per_s": _WHOLE_RUN,
    "output_tokens_per_s": f"{_WHOLE_RUN}, and counts the tokens of completed requests",
    "input_tokens_per_s": _WHOLE_RUN,
    "goodput_rps": f"{_WHOLE_RUN}, takes TPOT of an answer of one token for 0, and does not tell its objectives",
    "ttft_s": "vllm bench serve stamps what it has parsed, and gives 0 to an answer without a token",
    "icl_s": "what vllm bench serve calls ITL: gaps between chunks, stamped when parsed",
    "acceptance_length": "vllm bench serve takes the counters of the whole server from begin to end",
    "acceptance_ratio": "vllm bench serve takes the counters of the whole server from begin to end",
}


def sides_of(value: Any) -> tuple[Side, ...] | None:
    """The one run of a result; None for what is no such result."""
    if not isinstance(value, dict) or not {"request_throughput", "mean_ttft_ms", "completed"} <= value.keys():
        return None
    load = _load(value)
    values = {
        f"{name}.{statistic}": time_s(value, f"{theirs}_{key}_ms", factor=1e-3) or None  # 0: nothing had a value
        for name, key in _LATENCIES.items()
        for statistic, theirs in _STATISTICS.items()
    }
    values |= {
        "requests_per_s": quantity(value, "request_throughput"),
        "output_tokens_per_s": quantity(value, "output_throughput"),
        "input_tokens_per_s": share(quantity(value, "total_input_tokens"), time_s(value, "duration", factor=1)),
        "goodput_rps": quantity(value, "request_goodput"),
        "error_ratio": _error_ratio(value),
        "acceptance_length": _length(value),
        "acceptance_ratio": fraction(value, "spec_decode_acceptance_rate", of=100),
    }
    speculates = "spec_decode_num_drafts" in value
    return (
        Side(
            tool=TOOL,
            load=load,
            values=values,
            otherwise=_OTHERWISE,
            workload={name: told for name, told in load_settings(load).items() if name in _TOLD},
            speculates=True if speculates else None,
            population="drafting_steps" if speculates else None,
        ),
    )


def _load(value: dict[str, Any]) -> Load:
    rate, requests = number(value.get("request_rate")), whole(value.get("num_prompts"))
    cap = whole(value.get("max_concurrency"))
    if rate is None:
        return Load(mode=LoadMode.CONCURRENCY, concurrency=cap or requests, num_requests=requests)
    burstiness = number(value.get("burstiness"))
    return Load(
        mode=LoadMode.RATE, request_rate_rps=rate, burstiness=burstiness, max_concurrency=cap, num_requests=requests
    )


def _error_ratio(value: dict[str, Any]) -> float | None:
    requests, completed = number(value.get("num_prompts")), number(value.get("completed"))
    return share(None if requests is None or completed is None else requests - completed, requests)


def _length(value: dict[str, Any]) -> float | None:
    """The tool falls back to 0 where nothing was drafted."""
    return quantity(value, "spec_decode_acceptance_length") or None
