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
    cached = page.total(_CACHED)
    if cached is not None and counters.prompt_tokens is not None:
        asked = counters.prompt_tokens + cached
        counters = replace(counters, prompt_tokens=asked, prefix_query_tokens=asked, prefix_hit_tokens=cached)
    sample = ServerSample(
        engine="0",
        counters=counters,
        gauges=Gauges(
            running_requests=page.total(_RUNNING),
            waiting_requests=page.total(_WAITING),
            kv_used_ratio=page.total(_KV_USED),
        ),
        started_unix_s=started_unix_s(page),
    )
    return (sample,)
