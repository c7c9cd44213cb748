"""vLLM's metrics page, versions 0.10 to 0.33, one sample an engine process.

Names are those of `vllm/v1/metrics/loggers.py` and `vllm/v1/spec_decode/metrics.py`. Renamed on the way: the cache
metrics that began with `gpu_` (pull request 18354, gone with 29330) and `time_per_output_token_seconds`, which counted
the same steps as `inter_token_latency_seconds` does (24110, gone with 32661). For some versions both names were there,
with the same figures.
"""

from loadgen.adapters.servers.exposition import (
    PROCESS_START,
    Names,
    Page,
    counter,
    expect_some,
    of_model,
    read_page,
    started_unix_s,
)
from loadgen.core.server.sample import Gauges, ServerSample

_COUNTERS: dict[str, Names] = {
    "prompt_tokens": counter("vllm:prompt_tokens"),
    "generation_tokens": counter("vllm:generation_tokens"),
    "first_tokens": ("vllm:time_to_first_token_seconds_count",),
    "finished_requests": counter("vllm:request_success"),
    "drafts": counter("vllm:spec_decode_num_drafts"),
    "drafted_tokens": counter("vllm:spec_decode_num_draft_tokens"),
    "accepted_tokens": counter("vllm:spec_decode_num_accepted_tokens"),
    # one observation a request and step, however many tokens the step gave
    "decode_steps": ("vllm:inter_token_latency_seconds_count", "vllm:time_per_output_token_seconds_count"),
    "preemptions": counter("vllm:num_preemptions"),
    "prefix_query_tokens": counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "prefix_hit_tokens": counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    "timed_requests": ("vllm:request_queue_time_seconds_count",),
    "queue_s": ("vllm:request_queue_time_seconds_sum",),
    "prefill_s": ("vllm:request_prefill_time_seconds_sum",),
    "decode_s": ("vllm:request_decode_time_seconds_sum",),
    "iterations": ("vllm:iteration_tokens_total_count",),
    "iteration_tokens": ("vllm:iteration_tokens_total_sum",),
}
_BY_POSITION = counter("vllm:spec_decode_num_accepted_tokens_per_pos")
_RUNNING: Names = ("vllm:num_requests_running",)
_WAITING: Names = ("vllm:num_requests_waiting",)
_KV_USED: Names = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_GAUGES = {"running_requests": _RUNNING, "waiting_requests": _WAITING, "kv_used_ratio": _KV_USED}
_GAPS = _COUNTERS | {"accepted_by_position": _BY_POSITION} | _GAUGES
_WANTED = frozenset({PROCESS_START, *_BY_POSITION, *_RUNNING, *_WAITING, *_KV_USED}.union(*_COUNTERS.values()))


def vllm_samples(text: str, *, model: str) -> tuple[ServerSample, ...]:
    """One sample a value of the label `engine`. Raises ValueError for a page that is none of vLLM's, or of no use."""
    page = read_page(text, _WANTED)
    expect_some(page, "vLLM")
    started, ours = started_unix_s(page), of_model(page, model)
    parts = ours.parts("engine") or {"0": ours}
    return tuple(_sample(engine, part, started) for engine, part in parts.items())


def _sample(engine: str, page: Page, started: float | None) -> ServerSample:
    return ServerSample(
        engine=engine,
        counters=page.counters(_COUNTERS, accepted_by_position=page.by_position(_BY_POSITION, "position")),
        gauges=Gauges(
            running_requests=page.total(_RUNNING),
            waiting_requests=page.total(_WAITING),
            kv_used_ratio=page.total(_KV_USED),
        ),
        started_unix_s=started,
        gaps=page.gaps(_GAPS),
    )
