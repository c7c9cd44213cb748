"""SGLang's metrics page, versions 0.4 and 0.5, as one sample.

Names and labels are those of `srt/observability/metrics_collector.py` (once `srt/metrics/collector.py`).
Its front end counts tokens, requests and verification calls, for all ranks and when a request ends. Each scheduler has
gauges and counters with its ranks as labels: one scheduler a data-parallel rank unless metrics of all schedulers were
asked for, when tensor- and pipeline-parallel ranks repeat the same requests. Series come with their first observation,
and the page of a fresh server is empty.
"""

from loadgen.adapters.servers.exposition import (
    PROCESS_START,
    Names,
    Page,
    Series,
    counter,
    of_model,
    read_page,
    started_unix_s,
)
from loadgen.core.server.sample import Gauges, ServerSample

_COUNTERS: dict[str, Names] = {
    "prompt_tokens": counter("sglang:prompt_tokens"),
    "generation_tokens": counter("sglang:generation_tokens"),
    # tokens are counted when a request ends, and so are the first tokens among them: not its histogram of first tokens
    "first_tokens": counter("sglang:num_requests"),
    "finished_requests": counter("sglang:num_requests"),
    "verify_steps": counter("sglang:spec_verify_calls"),
    "preemptions": counter("sglang:num_retracted_requests"),
    "prefix_query_tokens": counter("sglang:prompt_tokens"),
    "prefix_hit_tokens": counter("sglang:cached_tokens"),
    "timed_requests": ("sglang:queue_time_seconds_count",),
    "queue_s": ("sglang:queue_time_seconds_sum",),
}
_RUNNING: Names = ("sglang:num_running_reqs",)
_WAITING: Names = ("sglang:num_queue_reqs",)
_KV_USED: Names = ("sglang:token_usage",)
_PREFIX_HIT: Names = ("sglang:cache_hit_rate",)
_ACCEPTANCE_LENGTH: Names = ("sglang:spec_accept_length",)
_ACCEPTANCE_RATIO: Names = ("sglang:spec_accept_rate",)
_SPEC_STEPS: Names = ("sglang:spec_num_steps",)
_GAUGES = {*_RUNNING, *_WAITING, *_KV_USED, *_PREFIX_HIT, *_ACCEPTANCE_LENGTH, *_ACCEPTANCE_RATIO, *_SPEC_STEPS}
_WANTED = frozenset({PROCESS_START, *_GAUGES}.union(*_COUNTERS.values()))
_REPEATING = ("tp_rank", "pp_rank", "moe_ep_rank")
"""Ranks that work on the same requests; `dp_rank` tells apart those that do not."""


def sglang_samples(text: str, *, model: str) -> tuple[ServerSample, ...]:
    """The page's one sample, named 0. Over data-parallel ranks requests are sums and cache use is the fullest rank's.

    Raises ValueError for what is no metrics page, or another engine's.
    """
    page = read_page(text, _WANTED)
    if text.strip() and "sglang:" not in text:
        raise ValueError("nothing on the page is a metric of SGLang")
    ours = _once(of_model(page, model))
    length = _common(ours, _ACCEPTANCE_LENGTH)
    # 0 is what a server without speculation shows
    speculates = length is not None and length >= 1
    # the rate had the bonus token and the root of the tree in it before the number of steps was shown beside it
    rate = _common(ours, _ACCEPTANCE_RATIO) if speculates and ours.named(_SPEC_STEPS) else None
    kv_used = [each.value for each in ours.named(_KV_USED) if each.value is not None]
    sample = ServerSample(
        engine="0",
        counters=ours.counters(_COUNTERS),
        gauges=Gauges(
            running_requests=ours.total(_RUNNING),
            waiting_requests=ours.total(_WAITING),
            kv_used_ratio=max(kv_used, default=None),
            prefix_hit_ratio=_common(ours, _PREFIX_HIT),
            acceptance_length=length if speculates else None,
            acceptance_ratio=rate,
        ),
        started_unix_s=started_unix_s(page),
        gaps=ours.gaps(_COUNTERS),
    )
    return (sample,)


def _once(page: Page) -> Page:
    """Each figure from the lowest of the ranks that repeat it, and not once more by priority."""
    lowest: dict[tuple[str, frozenset[tuple[str, str]]], Series] = {}
    for series in sorted(page.series, key=_rank):
        if not series.labels.get("priority"):
            apart = frozenset(item for item in series.labels.items() if item[0] not in _REPEATING)
            lowest.setdefault((series.name, apart), series)
    return Page(tuple(lowest.values()))


def _rank(series: Series) -> tuple[int, ...]:
    ranks = [series.labels.get(label, "") for label in _REPEATING]
    return tuple(int(rank) if rank.isdecimal() else 0 for rank in ranks)


def _common(page: Page, names: Names) -> float | None:
    """The figure that all ranks share; None where they differ, since what to weigh them by is not on the page."""
    values = {each.value for each in page.named(names)}
    return values.pop() if len(values) == 1 else None
