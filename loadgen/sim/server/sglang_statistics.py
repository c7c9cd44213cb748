"""What SGLang 0.5.23 counts, as its metrics page has it.

From its source: names, labels and bounds of the metrics (`observability/metrics_collector.py`), and when each is
updated (`scheduler_components/metrics_reporter.py`, `tokenizer_manager.py`). Not confirmed for this very release: the
label `is_streaming`.

What a reader of its figures has to know, and finds here: counters of requests and of their tokens rise when a request
has finished; the gauges are those of the last prompt step or of the last 40 decode steps; the cache's hit rate is that
of one prompt step and falls to 0 at the next decode report; drafts proposed are not counted but computed, as verify
calls times draft length. A real server keeps its last gauges for up to 30 s when it has nothing to do; this one shows
an idle server at once.
"""

from collections.abc import Sequence
from typing import Any

from loadgen.core.simulation.step import Step
from loadgen.core.units import NS_PER_S, seconds
from loadgen.sim.server.dialect import Load, Reply, ServerFacts
from loadgen.sim.server.exchange import Answer, Part
from loadgen.sim.server.pages import Buckets, MetricsPage

DECODE_LOG_INTERVAL = 40
"""Decode steps from one report to the next."""

_FIRST_TOKEN_S = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
_REQUEST_S = (*_FIRST_TOKEN_S, 600, 1200, 1800, 2400)
_TOKEN_S = (
    *(0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)
_QUEUE_S = (
    *(0, 0.001, 0.005, 0.010, 0.050, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100),
    *(200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000),
)


class SglangStatistics:
    """SGLang's counters since its start, and its gauges of the last report."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        speculator = facts.speculator
        self._draft_tokens = None if speculator is None else speculator.draft_tokens
        # Gauges of the last report; None before there was one.
        self._load: Load | None = None
        self._cache_hit_ratio: float | None = None
        self._tokens_per_s: float | None = None
        self._accept_length: float | None = None
        self._accept_ratio: float | None = None
        # Since the last decode report, and of all reports together.
        self._decode_steps = 0
        self._generated = 0
        self._verified = 0
        self._accepted = 0
        self._reported_ns: int | None = None
        self._total_verified = 0
        self._total_accepted = 0
        # Counters. The lists have one entry for whole answers and one for streams.
        self._realtime = {"prefill_compute": 0, "prefill_cache": 0, "decode": 0}
        self._requests = [0, 0]
        self._prompt_tokens = [0, 0]
        self._generation_tokens = [0, 0]
        self._first_token = [Buckets(*_FIRST_TOKEN_S), Buckets(*_FIRST_TOKEN_S)]
        self._whole_request = [Buckets(*_REQUEST_S), Buckets(*_REQUEST_S)]
        self._verify_calls = 0
        self._cached_tokens = 0
        self._aborted = 0
        self._between_tokens = Buckets(*_TOKEN_S)
        self._queue = Buckets(*_QUEUE_S)
        self._last_ns: dict[int, int] = {}

    def received(self, answer: Answer) -> None:
        """Nothing is counted before the first token."""

    def stepped(self, step: Step, parts: Sequence[tuple[Answer, Part]], load: Load) -> None:
        """Latencies and live counters; the gauges when it is time for a report."""
        end_ns = step.end_ns
        for answer, part in parts:
            before_ns = self._last_ns.get(answer.key)
            if before_ns is None:
                self._observe_first(answer, end_ns)
            else:
                tokens = part.stop - part.start
                self._between_tokens.add((end_ns - before_ns) / (NS_PER_S * tokens), tokens)
            self._last_ns[answer.key] = end_ns
        if step.prompt_tokens:
            self._report_prompt(step, load)
        if len(step.keys):
            self._count_decode(step, load)
        if not load.running and not load.waiting:
            self._load, self._tokens_per_s = load, 0.0

    def finished(self, answer: Answer, reason: str) -> None:
        """The request's totals; of one that was aborted only that."""
        self._last_ns.pop(answer.key, None)
        if reason == "abort" or answer.last_ns is None:
            self._aborted += 1
            return
        streamed = answer.asked.stream
        self._requests[streamed] += 1
        self._prompt_tokens[streamed] += len(answer.asked.prompt_ids)
        self._generation_tokens[streamed] += answer.emitted
        self._cached_tokens += answer.cached_tokens
        if self._draft_tokens is not None:
            self._verify_calls += answer.decode_steps
        self._whole_request[streamed].add(seconds(answer.last_ns - answer.received_ns))

    def internal_state(self) -> dict[str, Any]:
        """The scheduler's state in `/server_info`. The acceptance length is that of all reports since the start, and
        missing before the first.
        """
        state: dict[str, Any] = {
            "last_gen_throughput": self._tokens_per_s or 0.0,
            "memory_usage": {"token_capacity": self._facts.kv_blocks * self._facts.block_tokens},
            "effective_max_running_requests_per_dp": self._facts.max_sequences,
        }
        if self._total_verified:
            state["avg_spec_accept_length"] = self._total_accepted / self._total_verified
        return state

    def page(self) -> Reply:
        """`/metrics`."""
        shared = {"model_name": self._facts.model, "engine_type": "unified"}
        page = MetricsPage(shared)
        rank = {"tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0"}
        if self._load is not None:
            load = self._load
            page.gauge("sglang:num_running_reqs", "The number of running requests.", load.running, **rank)
            page.gauge("sglang:num_queue_reqs", "The number of waiting requests.", load.waiting, **rank)
            page.gauge("sglang:token_usage", "The share of the KV cache in use.", load.kv_used_ratio, **rank)
            page.gauge("sglang:gen_throughput", "Generated tokens a second.", self._tokens_per_s or 0.0, **rank)
            page.gauge("sglang:cache_hit_rate", "The prefix cache's hit rate.", self._cache_hit_ratio or 0.0, **rank)
            length, ratio = self._accept_length or 0.0, self._accept_ratio or 0.0
            page.gauge("sglang:spec_accept_length", "Tokens of a verification, bonus included.", length, **rank)
            page.gauge("sglang:spec_accept_rate", "Accepted drafts by proposed drafts.", ratio, **rank)
            steps = self._draft_tokens or 0
            page.gauge("sglang:spec_num_steps", "Draft steps now in use.", steps, **rank)
            drafts = steps + 1 if steps else 0
            page.gauge("sglang:spec_num_draft_tokens", "Draft tokens now in use, bonus included.", drafts, **rank)
        capacity = self._facts.kv_blocks * self._facts.block_tokens
        page.gauge("sglang:max_total_num_tokens", "The KV cache's size in tokens.", capacity, **rank)
        for mode, tokens in self._realtime.items():
            page.counter("sglang:realtime_tokens_total", "Tokens processed.", tokens or None, mode=mode, **rank)
        page.histogram("sglang:queue_time_seconds", "Seconds in the queue.", self._queue, **rank)
        for streamed in (False, True):
            by = {"is_streaming": str(streamed).lower()}
            given, made = self._prompt_tokens[streamed] or None, self._generation_tokens[streamed] or None
            page.counter("sglang:prompt_tokens_total", "Prompt tokens of finished requests.", given, **by)
            page.counter("sglang:generation_tokens_total", "Output tokens of finished requests.", made, **by)
            requests = self._requests[streamed] or None
            page.counter("sglang:num_requests_total", "Requests finished.", requests, **by)
            first, whole = self._first_token[streamed], self._whole_request[streamed]
            page.histogram("sglang:time_to_first_token_seconds", "Seconds to the first token.", first, **by)
            page.histogram("sglang:e2e_request_latency_seconds", "Seconds of a request.", whole, **by)
        calls, cached = self._verify_calls or None, self._cached_tokens or None
        page.counter("sglang:spec_verify_calls_total", "Verifications of finished requests.", calls)
        page.counter("sglang:cached_tokens_total", "Prompt tokens from the cache.", cached, cache_source="device")
        page.counter("sglang:num_aborted_requests_total", "Requests aborted.", self._aborted or None)
        page.histogram("sglang:inter_token_latency_seconds", "Seconds between tokens.", self._between_tokens)
        return page.reply()

    def _observe_first(self, answer: Answer, end_ns: int) -> None:
        self._first_token[answer.asked.stream].add(seconds(end_ns - answer.received_ns))
        if answer.scheduled_ns is not None:
            self._queue.add(seconds(answer.scheduled_ns - answer.received_ns))

    def _report_prompt(self, step: Step, load: Load) -> None:
        cached = sum(step.cached_tokens.values())
        self._realtime["prefill_compute"] += step.prompt_tokens
        self._realtime["prefill_cache"] += cached
        self._cache_hit_ratio = cached / (cached + step.prompt_tokens)
        self._load = load

    def _count_decode(self, step: Step, load: Load) -> None:
        """One decode step; every 40th makes a report of all since the last."""
        if self._reported_ns is None:
            self._reported_ns = step.start_ns
        requests = len(step.keys)
        tokens = requests + int(step.accepted.sum())
        self._realtime["decode"] += tokens
        self._generated += tokens
        if self._draft_tokens is not None:
            self._verified += requests
            self._accepted += tokens
        self._decode_steps += 1
        if self._decode_steps % DECODE_LOG_INTERVAL:
            return
        self._load, self._cache_hit_ratio = load, 0.0
        self._tokens_per_s = self._generated * NS_PER_S / max(step.end_ns - self._reported_ns, 1)
        self._reported_ns, self._generated = step.end_ns, 0
        if self._draft_tokens is not None:
            self._accept_length = self._accepted / self._verified
            self._accept_ratio = (self._accepted - self._verified) / (self._verified * self._draft_tokens)
            self._total_verified += self._verified
            self._total_accepted += self._accepted
            self._verified = self._accepted = 0
