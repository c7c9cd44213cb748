"""What TensorRT-LLM counts: a page for Prometheus, and lists of iterations and requests.

From its source: names, labels and bounds of the metrics (`metrics/collector.py`), the fields of iterations and requests
and that reading empties both lists (`serve/openai_server.py`, `serve/_perf_metrics_schema.py`). Not confirmed: that the
acceptance length of an iteration without drafts is 0, and that drafting shows no latency of its own.

What a reader of its figures has to know, and finds here: `/metrics` is JSON and Prometheus' page is elsewhere; one
reader takes what another then misses; counters of requests rise when a request has finished, those of speculation with
every iteration; the labels say `undefined`.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from loadgen.core.simulation.step import Step
from loadgen.core.units import seconds
from loadgen.sim.server.dialect import Load, Reply, ServerFacts
from loadgen.sim.server.exchange import Answer, Part
from loadgen.sim.server.pages import Buckets, MetricsPage

KEPT_ITERATIONS = 1000
"""Iterations that wait to be read; older ones are lost, as by default in TensorRT-LLM."""
KEPT_REQUESTS = 1000
"""The same for requests."""

_LABELS = {"model_name": "undefined", "engine_type": "undefined"}
_LONG_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5),
    *(10, 20, 40, 80, 160, 640, 2560),
)
_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_PREFILL_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 640, 2560)


class TensorrtLlmStatistics:
    """TensorRT-LLM's counters since its start, and the iterations and requests that nobody has read yet."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._iterations: deque[dict[str, Any]] = deque(maxlen=KEPT_ITERATIONS)
        self._requests: deque[dict[str, Any]] = deque(maxlen=KEPT_REQUESTS)
        self._last: dict[str, Any] | None = None
        self._steps = 0
        self._admitted_in: dict[int, int | None] = {}
        self._drafted = 0
        self._accepted = 0
        self._missed_blocks = 0
        self._reused_blocks = 0
        positions = 0 if facts.speculator is None else facts.speculator.draft_tokens
        self._drafted_at = [0] * positions
        self._accepted_at = [0] * positions
        self._ended: dict[str, int] = {}
        self._prompt_tokens = 0
        self._generation_tokens = 0
        self._cached_tokens = 0
        self._whole_request = Buckets(*_LONG_S)
        self._first_token = Buckets(*_FIRST_TOKEN_S)
        self._per_token = Buckets(*_TOKEN_S)
        self._queue = Buckets(*_LONG_S)
        self._prefill = Buckets(*_PREFILL_S)
        self._decode = Buckets(*_LONG_S)
        self._inference = Buckets(*_LONG_S)

    def received(self, answer: Answer) -> None:
        """Nothing is counted before it takes part in an iteration."""
        self._admitted_in[answer.key] = None

    def stepped(self, step: Step, parts: Sequence[tuple[Answer, Part]], load: Load) -> None:
        """One iteration more to be read."""
        self._steps += 1
        for key in step.cached_tokens:
            if key in self._admitted_in and self._admitted_in[key] is None:
                self._admitted_in[key] = self._steps
        size = self._facts.block_tokens
        self._reused_blocks += sum(step.cached_tokens.values()) // size
        self._missed_blocks += -(-step.prompt_tokens // size)
        latency_ms = (step.end_ns - step.start_ns) / 1e6
        used = round(load.kv_used_ratio * self._facts.kv_blocks)
        generating, tokens = len(step.keys), int(step.emitted.sum())
        iteration: dict[str, Any] = {
            "iter": self._steps,
            "iterLatencyMS": latency_ms,
            "numNewActiveRequests": len(step.cached_tokens),
            "numActiveRequests": load.running,
            "numQueuedRequests": load.waiting,
            "numCompletedRequests": len(step.finished),
            "maxNumActiveRequests": self._facts.max_sequences,
            "maxBatchSizeStatic": self._facts.max_sequences,
            "maxBatchSizeRuntime": self._facts.max_sequences,
            "maxNumTokensStatic": self._facts.token_budget,
            "maxNumTokensRuntime": self._facts.token_budget,
            "kvCacheStats": {
                "maxNumBlocks": self._facts.kv_blocks,
                "freeNumBlocks": self._facts.kv_blocks - used,
                "usedNumBlocks": used,
                "tokensPerBlock": size,
                "reusedBlocks": self._reused_blocks,
                "missedBlocks": self._missed_blocks,
                "cacheHitRate": _share(self._reused_blocks, self._reused_blocks + self._missed_blocks),
            },
            "inflightBatchingStats": {
                "numScheduledRequests": generating + len(step.prompt_ends),
                "numContextRequests": len(step.prompt_ends),
                "numGenRequests": generating,
                "numPausedRequests": len(step.preempted),
                "numCtxTokens": step.prompt_tokens,
                "microBatchId": 0,
                "avgNumDecodedTokensPerIter": _share(tokens, generating),
            },
        }
        if self._facts.speculator is not None:
            drafted, accepted = int(step.drafted.sum()), int(step.accepted.sum())
            with_drafts = int((step.drafted > 0).sum())
            self._drafted += drafted
            self._accepted += accepted
            iteration["specDecodingStats"] = {
                "numDraftTokens": drafted,
                "numAcceptedTokens": accepted,
                "numRequestsWithDraftTokens": with_drafts,
                "acceptanceLength": _share(accepted + with_drafts, with_drafts),
                "iterLatencyMS": 0.0,
                "draftOverhead": 0.0,
            }
        self._iterations.append(iteration)
        self._last = iteration

    def finished(self, answer: Answer, reason: str) -> None:
        """The request's record and totals; nothing of one whose client left."""
        admitted_in = self._admitted_in.pop(answer.key, None)
        scheduled_ns, first_ns, last_ns = answer.scheduled_ns, answer.first_ns, answer.last_ns
        if reason == "abort" or admitted_in is None or scheduled_ns is None or first_ns is None or last_ns is None:
            return
        self._requests.append(self._record(answer, admitted_in, (scheduled_ns, first_ns, last_ns)))
        self._ended[reason] = self._ended.get(reason, 0) + 1
        self._prompt_tokens += len(answer.asked.prompt_ids)
        self._generation_tokens += answer.emitted
        self._cached_tokens += answer.cached_tokens
        for drafted, accepted in zip(answer.drafted, answer.accepted, strict=True):
            for position in range(drafted):
                self._drafted_at[position] += 1
                self._accepted_at[position] += position < accepted
        self._whole_request.add(seconds(last_ns - answer.received_ns))
        self._first_token.add(seconds(first_ns - answer.received_ns))
        if answer.emitted > 1:
            self._per_token.add(seconds(last_ns - first_ns) / (answer.emitted - 1))
        self._queue.add(seconds(scheduled_ns - answer.received_ns))
        self._prefill.add(seconds(first_ns - scheduled_ns))
        self._decode.add(seconds(last_ns - first_ns))
        self._inference.add(seconds(last_ns - scheduled_ns))

    def take_iterations(self) -> list[dict[str, Any]]:
        """The iterations since the last reading."""
        taken = list(self._iterations)
        self._iterations.clear()
        return taken

    def take_requests(self) -> list[dict[str, Any]]:
        """The requests finished since the last reading."""
        taken = list(self._requests)
        self._requests.clear()
        return taken

    def page(self) -> Reply:
        """`/prometheus/metrics`. Its gauges are those of the last iteration."""
        page = MetricsPage(_LABELS)
        for reason, requests in self._ended.items():
            page.counter("trtllm_request_success_total", "Requests by their end.", requests, finished_reason=reason)
        page.histogram("trtllm_e2e_request_latency_seconds", "Seconds of a request.", self._whole_request)
        page.histogram("trtllm_time_to_first_token_seconds", "Seconds to the first token.", self._first_token)
        page.histogram("trtllm_time_per_output_token_seconds", "Seconds per output token.", self._per_token)
        page.histogram("trtllm_request_queue_time_seconds", "Seconds in the queue.", self._queue)
        page.histogram("trtllm_request_prefill_time_seconds", "Seconds of the prompt.", self._prefill)
        page.histogram("trtllm_request_decode_time_seconds", "Seconds of decoding.", self._decode)
        page.histogram("trtllm_request_inference_time_seconds", "Seconds scheduled.", self._inference)
        prompt, generation = self._prompt_tokens or None, self._generation_tokens or None
        page.counter("trtllm_prompt_tokens_total", "Prompt tokens of finished requests.", prompt)
        page.counter("trtllm_generation_tokens_total", "Output tokens of finished requests.", generation)
        page.counter("trtllm_prompt_cached_tokens_total", "Prompt tokens from the cache.", self._cached_tokens)
        for position, drafted in enumerate(self._drafted_at):
            at = {"token_position": str(position)}
            accepted = self._accepted_at[position] or None
            page.counter("trtllm_spec_decode_drafted_tokens_total", "Drafted by position.", drafted or None, **at)
            page.counter("trtllm_spec_decode_accepted_tokens_total", "Accepted by position.", accepted, **at)
        if self._last is not None:
            self._add_iteration(page, self._last)
        return page.reply()

    def _add_iteration(self, page: MetricsPage, last: dict[str, Any]) -> None:
        cache, batch = last["kvCacheStats"], last["inflightBatchingStats"]
        used = _share(cache["usedNumBlocks"], cache["maxNumBlocks"])
        page.gauge("trtllm_num_requests_running", "Active requests.", last["numActiveRequests"])
        page.gauge("trtllm_num_requests_waiting", "Queued requests.", last["numQueuedRequests"])
        page.gauge("trtllm_max_num_active_requests", "Most active requests.", last["maxNumActiveRequests"])
        page.gauge("trtllm_iteration_latency_seconds", "Seconds of an iteration.", last["iterLatencyMS"] / 1000)
        page.gauge("trtllm_kv_cache_hit_rate", "Share of blocks reused.", cache["cacheHitRate"])
        page.gauge("trtllm_kv_cache_utilization", "Share of blocks in use.", used)
        page.gauge("trtllm_kv_cache_max_blocks", "Blocks.", cache["maxNumBlocks"])
        page.gauge("trtllm_kv_cache_free_blocks", "Free blocks.", cache["freeNumBlocks"])
        page.gauge("trtllm_kv_cache_used_blocks", "Used blocks.", cache["usedNumBlocks"])
        page.gauge("trtllm_kv_cache_tokens_per_block", "Tokens of a block.", cache["tokensPerBlock"])
        page.gauge("trtllm_num_context_requests", "Requests in their prompt.", batch["numContextRequests"])
        page.gauge("trtllm_num_generation_requests", "Requests decoding.", batch["numGenRequests"])
        tokens = batch["avgNumDecodedTokensPerIter"]
        page.gauge("trtllm_avg_decoded_tokens_per_iter", "Tokens of a request and iteration.", tokens)
        if (speculation := last.get("specDecodingStats")) is not None:
            drafted, accepted = self._drafted or None, self._accepted or None
            page.counter("trtllm_spec_decode_num_draft_tokens_total", "Draft tokens.", drafted)
            page.counter("trtllm_spec_decode_num_accepted_tokens_total", "Draft tokens accepted.", accepted)
            length, overhead = speculation["acceptanceLength"], speculation["draftOverhead"]
            page.gauge("trtllm_spec_decode_acceptance_length", "Tokens of a request with drafts.", length)
            page.gauge("trtllm_spec_decode_draft_overhead", "Drafting by iteration latency.", overhead)

    def _record(self, answer: Answer, admitted_in: int, instants_ns: tuple[int, int, int]) -> dict[str, Any]:
        """One element of `/perf_metrics`; instants are seconds of the server's own clock."""
        scheduled_s, first_s, last_s = map(seconds, instants_ns)
        size = self._facts.block_tokens
        blocks, reused = -(-(len(answer.asked.prompt_ids) + answer.emitted) // size), answer.cached_tokens // size
        metrics: dict[str, Any] = {
            "first_iter": admitted_in,
            "last_iter": self._steps,
            "timing_metrics": {
                "arrival_time": seconds(answer.received_ns),
                "first_scheduled_time": scheduled_s,
                "first_token_time": first_s,
                "last_token_time": last_s,
            },
            "kv_cache_metrics": {
                "num_total_allocated_blocks": blocks,
                "num_new_allocated_blocks": blocks - reused,
                "num_reused_blocks": reused,
                "num_missed_blocks": -(-len(answer.asked.prompt_ids) // size) - reused,
            },
        }
        if answer.drafted:
            drafted, accepted = sum(answer.drafted), sum(answer.accepted)
            metrics["speculative_decoding"] = {
                "acceptance_rate": accepted / drafted,
                "total_accepted_draft_tokens": accepted,
                "total_draft_tokens": drafted,
            }
        return {"request_id": answer.key, "perf_metrics": metrics}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
