"""The metrics page of llama.cpp's server, which has no labels but draft positions: one sample.

Names are those of the server's README and of `tools/server`. Generated tokens are counted when a request's slot is
released. Prompt tokens are those computed; newer servers count those taken from the cache beside them.
"""

from dataclasses import replace

from loadgen.adapters.servers.exposition import (
    PROCESS_START,
    Names,
    counter,
    expect_some,
    read_page,
    started_unix_s,
)
from loadgen.core.server.sample import Gauges, ServerSample

_COUNTERS: dict[str, Names] = {
    "prompt_tokens": counter("llamacpp:prompt_tokens"),
    "generation_tokens": counter("llamacpp:tokens_predicted"),
    "drafts": counter("llamacpp:spec_decode_num_drafts"),
    "drafted_tokens": counter("llamacpp:spec_decode_num_draft_tokens"),
    "accepted_tokens": counter("llamacpp:spec_decode_num_accepted_tokens"),
    "prefill_s": counter("llamacpp:prompt_seconds"),
    "decode_s": counter("llamacpp:tokens_predicted_seconds"),
    "iterations": counter("llamacpp:n_decode"),
}
_CACHED = counter("llamacpp:prompt_tokens_cached")
_BY_POSITION = counter("llamacpp:spec_decode_num_accepted_tokens_per_pos")
_GAPS = _COUNTERS | {"accepted_by_position": _BY_POSITION}
_OF_CACHE = ("prompt_tokens", "prefix_query_tokens", "prefix_hit_tokens")
_RUNNING: Names = ("llamacpp:requests_processing",)
_WAITING: Names = ("llamacpp:requests_deferred",)
_KV_USED: Names = ("llamacpp:kv_cache_usage_ratio",)
_WANTED = frozenset(
    {PROCESS_START, *_CACHED, *_BY_POSITION, *_RUNNING, *_WAITING, *_KV_USED}.union(*_COUNTERS.values())
)


def llamacpp_samples(text: str, *, model: str) -> tuple[ServerSample, ...]:
    """The page's one sample, named 0; the server has one model. Raises ValueError for a page that is none of its."""
    page = read_page(text, _WANTED)
    expect_some(page, "llama.cpp")
    counters = page.counters(_COUNTERS, accepted_by_position=page.by_position(_BY_POSITION, "position"))
    gaps = page.gaps(_GAPS)
    if page.named(_CACHED):
        cached, computed = page.total(_CACHED), counters.prompt_tokens
        asked = None if cached is None or computed is None else computed + cached
        counters = replace(counters, prompt_tokens=asked, prefix_query_tokens=asked, prefix_hit_tokens=cached)
        gaps += tuple(name for name in _OF_CACHE if getattr(counters, name) is None and name not in gaps)
    sample = ServerSample(
        engine="0",
        counters=counters,
        gauges=Gauges(
            running_requests=page.total(_RUNNING),
            waiting_requests=page.total(_WAITING),
            kv_used_ratio=page.total(_KV_USED),
        ),
        started_unix_s=started_unix_s(page),
        gaps=gaps,
    )
    return (sample,)
