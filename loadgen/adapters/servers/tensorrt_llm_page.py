"""TensorRT-LLM's Prometheus page (`/prometheus/metrics`), as one sample.

Names are those of `tensorrt_llm/metrics/collector.py`. Before the prefix `trtllm_` came, names were bare, and a serving
front end put `trtllm:` before them. Tokens and times are counted when a request ends, draft tokens at each iteration
and, by position, again when a request ends.
"""

from dataclasses import replace

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
from loadgen.core.server.sample import Counters, Gauges, ServerSample


def _names(*names: str) -> Names:
    return tuple(prefix + name for prefix in ("trtllm_", "trtllm:", "") for name in names)


_COUNTERS: dict[str, Names] = {
    "prompt_tokens": _names(*counter("prompt_tokens")),
    "generation_tokens": _names(*counter("generation_tokens")),
    "first_tokens": _names("time_to_first_token_seconds_count"),
    "finished_requests": _names(*counter("request_success")),
    "drafted_tokens": _names(*counter("spec_decode_num_draft_tokens")),
    "accepted_tokens": _names(*counter("spec_decode_num_accepted_tokens")),
    "prefix_query_tokens": _names(*counter("prompt_tokens")),
    "prefix_hit_tokens": _names(*counter("prompt_cached_tokens")),
    "timed_requests": _names("request_queue_time_seconds_count"),
    "queue_s": _names("request_queue_time_seconds_sum"),
    "prefill_s": _names("request_prefill_time_seconds_sum"),
    "decode_s": _names("request_decode_time_seconds_sum"),
}
_DRAFTED_BY_POSITION = _names(*counter("spec_decode_drafted_tokens"))
_ACCEPTED_BY_POSITION = _names(*counter("spec_decode_accepted_tokens"))
_BY_POSITION = {"drafted": _DRAFTED_BY_POSITION, "accepted": _ACCEPTED_BY_POSITION}
_OF_SPECULATION = ("drafts", "drafted_tokens", "accepted_tokens", "accepted_by_position")
_RUNNING = _names("num_requests_running")
_WAITING = _names("num_requests_waiting")
_KV_USED = _names("kv_cache_utilization")
_PREFIX_HIT = _names("kv_cache_hit_rate")
_ACCEPTANCE_LENGTH = _names("spec_decode_acceptance_length")
_GAUGES = {*_RUNNING, *_WAITING, *_KV_USED, *_PREFIX_HIT, *_ACCEPTANCE_LENGTH}
_WANTED = frozenset({PROCESS_START, *_DRAFTED_BY_POSITION, *_ACCEPTED_BY_POSITION, *_GAUGES}.union(*_COUNTERS.values()))


def tensorrt_llm_samples(text: str, *, model: str) -> tuple[ServerSample, ...]:
    """The page's one sample, named 0. Raises ValueError for a page that is none of TensorRT-LLM's, or of no use."""
    page = read_page(text, _WANTED)
    expect_some(page, "TensorRT-LLM")
    ours = of_model(page, model)
    counters, gaps = _of_ended_requests(ours, ours.counters(_COUNTERS), ours.gaps(_COUNTERS))
    sample = ServerSample(
        engine="0",
        counters=counters,
        gauges=Gauges(
            running_requests=ours.total(_RUNNING),
            waiting_requests=ours.total(_WAITING),
            kv_used_ratio=ours.total(_KV_USED),
            prefix_hit_ratio=ours.total(_PREFIX_HIT),
            acceptance_length=ours.total(_ACCEPTANCE_LENGTH),
        ),
        started_unix_s=started_unix_s(page),
        gaps=gaps,
    )
    return (sample,)


def _of_ended_requests(page: Page, counters: Counters, gaps: tuple[str, ...]) -> tuple[Counters, tuple[str, ...]]:
    """The counters with every figure of speculation from the counts by position, where the server has those; the gaps.

    A step drafts its first position or nothing, so the first position's count is the number of steps that drafted.
    Taken all from one place, the ratios are of the same requests: those that ended. Before one has, there is nothing to
    tell whether such counts will come, and the iterations' totals, which are ahead of them, are not taken either.
    """
    if not page.named(_DRAFTED_BY_POSITION):
        if counters.finished_requests:
            return counters, gaps
        unsure = ("drafted_tokens", "accepted_tokens") if "finished_requests" in gaps else ()
        return replace(counters, drafted_tokens=None, accepted_tokens=None), tuple(dict.fromkeys((*gaps, *unsure)))
    elsewhere = tuple(name for name in gaps if name not in _OF_SPECULATION)
    drafted = page.by_position(_DRAFTED_BY_POSITION, "token_position")
    accepted = page.by_position(_ACCEPTED_BY_POSITION, "token_position") or ()
    if drafted is None or page.gaps(_BY_POSITION):
        return replace(counters, drafted_tokens=None, accepted_tokens=None), elsewhere + _OF_SPECULATION
    told = replace(
        counters,
        drafts=drafted[0],
        drafted_tokens=sum(drafted),
        accepted_tokens=sum(accepted),
        accepted_by_position=accepted + (0.0,) * (len(drafted) - len(accepted)),
    )
    return told, elsewhere
