"""What `trtllm-serve` of TensorRT-LLM looks like from outside, with `return_perf_metrics`, `enable_iter_perf_stats` and
`perf_metrics_max_requests` set.

From its source: the events (`serve/postprocess_handlers.py`). Not confirmed: what `avg_decoded_tokens_per_iter` counts
as an iteration, and what a stream says when the engine fails. Left out is what a simulated engine has not: times of
day, memory in bytes, configuration.
"""

from collections.abc import Sequence
from typing import Any

from loadgen.sim.server.dialect import CacheReset, Reply, ServerFacts, Statistics
from loadgen.sim.server.events import (
    DONE,
    chat_logprobs,
    completions_logprobs,
    encode,
    flat_error,
    model_card,
    sse,
    text_of,
    usage_at,
    usage_of,
)
from loadgen.sim.server.exchange import Answer, Part, RefusedError, Route
from loadgen.sim.server.pages import json_page
from loadgen.sim.server.tensorrt_llm_statistics import TensorrtLlmStatistics

VERSION = "1.3.0"
"""What `/version` says; the source that was read belongs to no release yet."""

_PREFIX = {Route.CHAT: "chatcmpl-", Route.COMPLETIONS: "cmpl-"}


class TensorrtLlmDialect:
    """TensorRT-LLM with these facts."""

    name = "tensorrt-llm"
    health = b""
    cache_reset: CacheReset | None = None

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts

    def statistics(self) -> TensorrtLlmStatistics:
        """A new set of counters, at zero."""
        return TensorrtLlmStatistics(self._facts)

    # Streams

    def opening(self, answer: Answer) -> bytes:
        """A chat's role event, which ends with a space more than the others."""
        if answer.asked.route is not Route.CHAT:
            return b""
        chunk = self._head(answer, "chat.completion.chunk")
        chunk["choices"] = [{"index": answer.index, "delta": {"role": "assistant"}}]
        if answer.asked.continuous_usage:
            chunk["usage"] = _with_cached(usage_at(answer, 0), answer)
        return b"data: %b \n\n" % encode(chunk)

    def part(self, answer: Answer, part: Part) -> bytes:
        """The event of one part; a chat's without the fields that are null, that of completions with them."""
        asked, output = answer.asked, answer.output
        choice: dict[str, Any] = {"index": answer.index}
        if asked.route is Route.CHAT:
            chunk = self._head(answer, "chat.completion.chunk")
            choice["delta"] = {"content": text_of(answer, part), "reasoning_content": ""}
            if asked.logprobs is not None:
                choice["logprobs"] = chat_logprobs(output, part.start, part.stop)
            if part.finished:
                choice["finish_reason"] = output.finish_reason
            if part.finished and output.stop_reason is not None:
                choice["stop_reason"] = output.stop_reason
        else:
            chunk = self._head(answer, "text_completion")
            choice |= _text_choice(answer, part) | {"disaggregated_params": None}
            chunk["usage"] = None
        choice["avg_decoded_tokens_per_iter"] = answer.emitted / (answer.decode_steps + 1)
        chunk["choices"] = [choice]
        if asked.continuous_usage:
            chunk["usage"] = _with_cached(usage_at(answer, part.stop), answer)
        return sse(chunk)

    def closing(self, answers: Sequence[Answer]) -> bytes:
        """The usage event, if asked for, and the end marker."""
        first = answers[0]
        if not first.asked.include_usage:
            return DONE
        kind = "chat.completion.chunk" if first.asked.route is Route.CHAT else "text_completion"
        return sse(self._head(first, kind) | {"choices": [], "usage": _with_cached(usage_of(answers), first)}) + DONE

    # Whole answers

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The body of an answer that is not streamed."""
        first, choices = answers[0], []
        for answer in answers:
            everything = Part(0, len(answer.output.ids), True)
            if answer.asked.route is Route.CHAT:
                message = {"role": "assistant", "content": text_of(answer, everything), "reasoning_content": ""}
                choice = {"index": answer.index, "message": message | {"tool_calls": []}, "logprobs": None}
                if answer.asked.logprobs is not None:
                    choice["logprobs"] = chat_logprobs(answer.output, 0, everything.stop)
                choice |= {"finish_reason": answer.output.finish_reason, "stop_reason": answer.output.stop_reason}
            else:
                choice = {"index": answer.index} | _text_choice(answer, everything)
            choice["disaggregated_params"] = None
            choice["avg_decoded_tokens_per_iter"] = answer.emitted / (answer.decode_steps + 1)
            choices.append(choice)
        kind = "chat.completion" if first.asked.route is Route.CHAT else "text_completion"
        return encode(self._head(first, kind) | {"choices": choices, "usage": _with_cached(usage_of(answers), first)})

    # Errors

    def refusal(self, refused: RefusedError) -> bytes:
        """The body of an error response: flat, unlike OpenAI's."""
        return encode(flat_error(refused))

    def error_event(self, message: str) -> bytes:
        """The error of a stream that had begun, with the end marker."""
        return sse({"error": flat_error(RefusedError(500, "InternalServerError", message))}) + DONE

    # Pages

    def model_card(self, created_s: int) -> dict[str, Any]:
        """The served model."""
        return model_card(self._facts, created_s) | {"owned_by": "tensorrt_llm"}

    def page(self, method: str, path: str, body: bytes, statistics: Statistics) -> Reply | None:
        """`/metrics` and `/perf_metrics`, which reading empties, `/prometheus/metrics` and `/version`."""
        assert isinstance(statistics, TensorrtLlmStatistics)
        match method, path.partition("?")[0]:
            case "GET", "/metrics":
                return json_page(statistics.take_iterations())
            case "GET", "/perf_metrics":
                return json_page(statistics.take_requests())
            case "GET", "/prometheus/metrics":
                return statistics.page()
            case "GET", "/version":
                return json_page({"version": VERSION})
        return None

    def _head(self, answer: Answer, kind: str) -> dict[str, Any]:
        return {
            "id": _PREFIX[answer.asked.route] + answer.asked.request_id,
            "object": kind,
            "created": answer.created_s,
            "model": self._facts.model,
        }


def _with_cached(usage: dict[str, Any], answer: Answer) -> dict[str, Any]:
    return usage | {"prompt_tokens_details": {"cached_tokens": answer.cached_tokens}}


def _text_choice(answer: Answer, part: Part) -> dict[str, Any]:
    output = answer.output
    told = answer.asked.logprobs is not None
    return {
        "text": text_of(answer, part),
        "token_ids": None,
        "logprobs": completions_logprobs(output, part.start, part.stop) if told else None,
        "context_logits": None,
        "finish_reason": output.finish_reason if part.finished else None,
        "stop_reason": output.stop_reason if part.finished else None,
    }
