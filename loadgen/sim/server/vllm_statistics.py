"""vLLM's `/metrics`: its names, labels and bucket bounds, and what it counts when.

Where vLLM's habit is not the obvious one: prompt tokens count when a request's first token is there, and all at once;
the gap between two steps' tokens is one sample of `inter_token_latency_seconds`, however many tokens the second gave;
a request of one token has a time per output token of 0; a request whose client left is not among `request_success`,
nor in any histogram of finished requests.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from loadgen.core.simulation.step import Step
from loadgen.core.units import seconds
from loadgen.sim.server.dialect import Load, ServerFacts
from loadgen.sim.server.exchange import Answer, Part
from loadgen.sim.server.vllm_info import cache_configuration

_ENGINE = "0"
_LATENCY_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5),
    *(10, 20, 40, 80, 160, 640, 2560),
)
_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_STEP_TOKENS = (1, 8, *(2**power for power in range(4, 15)))
_CHOICES = (1, 2, 5, 10, 20)
_PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
_Metric = TypeVar("_Metric", Counter, Gauge, Histogram)
_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
_REASONS = ("stop", "length", "abort", "error", "repetition")


class VllmStatistics:
    """Counts since it was made. Each step costs a sample for each request that got tokens, and little else."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._registry = CollectorRegistry()
        for collector in (PlatformCollector, GCCollector, _Process):
            collector(registry=self._registry)
        self._unscheduled: dict[int, Answer] = {}
        self._last_ns: dict[int, int] = {}
        self._siblings: dict[int, list[int]] = {}
        self._load = Load(running=0, waiting=0, kv_used_ratio=0.0)
        self._make_gauges()
        self._make_counters()
        self._make_histograms()

    def exposition(self) -> bytes:
        """The page in Prometheus' text format."""
        return generate_latest(self._registry)

    # What happens

    def received(self, answer: Answer) -> None:
        """A request was taken in."""
        self._unscheduled[answer.key] = answer

    def stepped(self, step: Step, parts: Sequence[tuple[Answer, Part]], load: Load) -> None:
        """A step ended and gave these parts; answers already hold what it added."""
        self._show(load)
        self._count_admitted(step.cached_tokens)
        if self._facts.speculator is not None and step.draft_tokens:
            self._count_drafts(step)
        self._preempted.inc(len(step.preempted))
        generated = computed = 0
        for answer, part in parts:
            generated += part.stop - part.start
            if part.start:
                self._gap.observe(seconds(step.end_ns - self._last_ns[answer.key]))
            else:
                self._first_token.observe(seconds(step.end_ns - answer.received_ns))
                computed += self._count_prompt(answer)
            self._last_ns[answer.key] = step.end_ns
        if parts:
            self._generated.inc(generated)
            self._step_tokens.observe(computed + generated)

    def finished(self, answer: Answer, reason: str) -> None:
        """An answer ended: `stop`, `length`, or `abort` when its client left."""
        waiting = self._unscheduled.pop(answer.key, None) is not None
        self._last_ns.pop(answer.key, None)
        if reason == "abort":
            # Else only a later step would show it, and perhaps there is none.
            load = self._load
            running, queued = load.running - (not waiting), max(load.waiting - waiting, 0)
            self._show(Load(running=running, waiting=queued, kv_used_ratio=load.kv_used_ratio if running else 0.0))
            self._siblings.pop(id(answer.asked), None)
            return
        self._success[reason].inc()
        self._observe_finished(answer)

    # How it is counted

    def _show(self, load: Load) -> None:
        self._load = load
        self._running.set(load.running)
        self._waiting.set(load.waiting)
        self._waiting_for["capacity"].set(load.waiting)
        self._kv_used.set(load.kv_used_ratio)

    def _count_admitted(self, cached_tokens: dict[int, int]) -> None:
        """The look-up in the prefix cache, once a request: what a preempted one finds later does not count."""
        for key, cached in cached_tokens.items():
            answer = self._unscheduled.pop(key, None)
            if answer is not None and self._facts.prefix_caching:
                self._prefix_queries.inc(len(answer.asked.prompt_ids))
                self._prefix_hits.inc(cached)
                self._cached_in["device"].inc(cached)

    def _count_drafts(self, step: Step) -> None:
        drafted = int(step.drafted.sum())
        self._drafts.inc(int(np.count_nonzero(step.drafted)))
        self._draft_tokens.inc(drafted)
        self._accepted.inc(int(step.accepted.sum()))
        for place, counter in enumerate(self._accepted_at):
            counter.inc(int(np.count_nonzero(step.accepted > place)))

    def _count_prompt(self, answer: Answer) -> int:
        """A prompt whose first token is there; the tokens of it that were computed."""
        prompt, cached = len(answer.asked.prompt_ids), answer.cached_tokens
        self._prompt.inc(prompt)
        self._prompt_from["local_compute"].inc(prompt - cached)
        self._prompt_from["local_cache_hit"].inc(cached)
        self._prompt_cached.inc(cached)
        return prompt - cached

    def _observe_finished(self, answer: Answer) -> None:
        scheduled_ns, first_ns, last_ns = answer.scheduled_ns, answer.first_ns, answer.last_ns
        assert scheduled_ns is not None
        assert first_ns is not None
        assert last_ns is not None
        asked, tokens = answer.asked, answer.emitted
        decode_s = seconds(last_ns - first_ns)
        self._whole.observe(seconds(last_ns - answer.received_ns))
        self._queued.observe(seconds(scheduled_ns - answer.received_ns))
        self._prefill.observe(seconds(first_ns - scheduled_ns))
        self._inference.observe(seconds(last_ns - scheduled_ns))
        self._decode.observe(decode_s)
        self._per_token.observe(decode_s / (tokens - 1) if tokens > 1 else 0)
        self._preemptions.observe(answer.preemptions)
        self._prompt_computed.observe(len(asked.prompt_ids) - answer.cached_tokens)
        self._prompt_lengths.observe(len(asked.prompt_ids))
        self._lengths.observe(tokens)
        self._max_tokens.observe(asked.max_tokens)
        siblings = self._siblings.setdefault(id(asked), [])
        siblings.append(tokens)
        if len(siblings) == asked.n:
            self._choices.observe(asked.n)
            self._longest.observe(max(siblings))
            del self._siblings[id(asked)]

    # What there is to count

    def _make_gauges(self) -> None:
        self._running = self._gauge("num_requests_running", "Requests that take part in steps.")
        self._waiting = self._gauge("num_requests_waiting", "Requests that wait for a place.")
        reasons = ("capacity", "deferred")
        self._waiting_for = self._gauges("num_requests_waiting_by_reason", "Of these, by reason.", "reason", reasons)
        self._kv_used = self._gauge("kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.")
        states = ("awake", "weights_offloaded", "discard_all")
        self._gauges("engine_sleep_state", "Whether the engine is awake.", "sleep_state", states)["awake"].set(1)
        cache = {name: str(value) for name, value in cache_configuration(self._facts).items()} | {"engine": _ENGINE}
        Gauge("vllm:cache_config_info", "The KV cache as configured.", [*cache], registry=self._registry).labels(
            **cache
        ).set(1)

    def _make_counters(self) -> None:
        if self._facts.speculator is not None:
            self._drafts = self._counter("spec_decode_num_drafts", "Steps of a request that had a draft.")
            self._draft_tokens = self._counter("spec_decode_num_draft_tokens", "Tokens drafted.")
            self._accepted = self._counter("spec_decode_num_accepted_tokens", "Of these, accepted.")
            places = [str(place) for place in range(self._facts.speculator.draft_tokens)]
            self._accepted_at = self._counters(
                "spec_decode_num_accepted_tokens_per_pos", "Accepted by place in the draft.", "position", places
            ).values()
        self._preempted = self._counter("num_preemptions", "Requests that lost their memory for others.")
        self._prefix_queries = self._counter("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.")
        self._prefix_hits = self._counter("prefix_cache_hits", "Prompt tokens found there.")
        self._cached_in = self._counters("prompt_tokens_cached_by_source", "The same by tier.", "source", _TIERS)
        self._prompt = self._counter("prompt_tokens", "Prompt tokens of requests that got a first token.")
        self._prompt_from = self._counters("prompt_tokens_by_source", "The same by origin.", "source", _SOURCES)
        self._prompt_cached = self._counter("prompt_tokens_cached", "Of these, found in a cache.")
        self._generated = self._counter("generation_tokens", "Output tokens.")
        self._success = self._counters("request_success", "Requests that ended.", "finished_reason", _REASONS)
        for name in ("external_prefix_cache", "mm_cache"):
            self._counter(f"{name}_queries", "A cache that this server does not have.")
            self._counter(f"{name}_hits", "A cache that this server does not have.")
        rejections = Counter(
            "vllm:admission_rejections", "Requests turned away.", ["model_name", "reason"], registry=self._registry
        )
        for reason in ("max_num_queued_reqs", "max_num_queued_tokens"):
            rejections.labels(self._facts.model, reason)

    def _make_histograms(self) -> None:
        tokens = _one_two_five(self._facts.max_model_len)
        self._first_token = self._histogram(
            "time_to_first_token_seconds", "From arrival to the first token.", _FIRST_TOKEN_S
        )
        self._gap = self._histogram("inter_token_latency_seconds", "Between a request's steps with tokens.", _TOKEN_S)
        self._per_token = self._histogram(
            "request_time_per_output_token_seconds", "Decode time by tokens after the first, a request.", _TOKEN_S
        )
        self._whole = self._histogram("e2e_request_latency_seconds", "From arrival to the last token.", _LATENCY_S)
        self._queued = self._histogram("request_queue_time_seconds", "From arrival to the first step.", _LATENCY_S)
        self._prefill = self._histogram("request_prefill_time_seconds", "From there to the first token.", _LATENCY_S)
        self._inference = self._histogram(
            "request_inference_time_seconds", "From the first step to the last token.", _LATENCY_S
        )
        self._decode = self._histogram("request_decode_time_seconds", "From the first token to the last.", _LATENCY_S)
        self._step_tokens = self._histogram("iteration_tokens_total", "Tokens a step.", _STEP_TOKENS)
        self._prompt_lengths = self._histogram("request_prompt_tokens", "Prompt tokens a request.", tokens)
        self._prompt_computed = self._histogram(
            "request_prefill_kv_computed_tokens", "Of these, not found in a cache.", tokens
        )
        self._lengths = self._histogram("request_generation_tokens", "Output tokens a request.", tokens)
        self._longest = self._histogram(
            "request_max_num_generation_tokens", "Output tokens of a request's longest choice.", tokens
        )
        self._max_tokens = self._histogram("request_params_max_tokens", "The limit that was asked for.", tokens)
        self._choices = self._histogram("request_params_n", "Choices asked for.", _CHOICES)
        self._preemptions = self._histogram("request_num_preemptions", "Preemptions a request.", _PREEMPTIONS)

    def _counter(self, name: str, text: str) -> Counter:
        return self._labelled(Counter, name, text)

    def _counters(self, name: str, text: str, label: str, values: Sequence[str]) -> dict[str, Counter]:
        return self._by_label(Counter, name, text, label, values)

    def _gauge(self, name: str, text: str) -> Gauge:
        return self._labelled(Gauge, name, text)

    def _gauges(self, name: str, text: str, label: str, values: Sequence[str]) -> dict[str, Gauge]:
        return self._by_label(Gauge, name, text, label, values)

    def _histogram(self, name: str, text: str, bounds: Sequence[float]) -> Histogram:
        return self._labelled(Histogram, name, text, buckets=bounds)

    def _labelled(self, kind: type[_Metric], name: str, text: str, **more: Any) -> _Metric:
        metric = kind(f"vllm:{name}", text, ["model_name", "engine"], registry=self._registry, **more)
        return metric.labels(self._facts.model, _ENGINE)

    def _by_label(
        self, kind: type[_Metric], name: str, text: str, label: str, values: Sequence[str]
    ) -> dict[str, _Metric]:
        metric = kind(f"vllm:{name}", text, ["model_name", "engine", label], registry=self._registry)
        return {value: metric.labels(self._facts.model, _ENGINE, value) for value in values}


class _Process(ProcessCollector):
    """This process, as if it had started when the counting did: so a restarted server shows that it is another."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._started_unix_s = time.time()
        super().__init__(registry=registry)

    def collect(self) -> Iterator[Metric]:
        """The families of the page's next scrape."""
        for family in super().collect():
            if family.name == "process_start_time_seconds":
                yield GaugeMetricFamily(family.name, family.documentation, value=self._started_unix_s)
            else:
                yield family


def _one_two_five(most: int) -> tuple[int, ...]:
    """1, 2, 5, 10, 20, … up to `most`."""
    powers = (10**power for power in range(len(str(most))))
    return tuple(bound for power in powers for bound in (power, 2 * power, 5 * power) if bound <= most)
