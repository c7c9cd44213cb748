"""What SGLang 0.5.23 looks like from outside.

From its source: the events (`entrypoints/openai/serving_chat.py`, `serving_completions.py`, `sse_utils.py`). Not
confirmed for this very release: the keys of `/model_info`. `/server_info` has the arguments that a comparison of
configurations reads, not all.
"""

from collections.abc import Sequence
from typing import Any

from loadgen.core.simulation.speculator import Method
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
from loadgen.sim.server.sglang_statistics import DECODE_LOG_INTERVAL, SglangStatistics

VERSION = "0.5.23"
"""The release that is imitated."""

_TEXT = "text/plain; charset=utf-8"
_ALGORITHMS = {
    Method.NGRAM: "NGRAM",
    Method.DRAFT_MODEL: "STANDALONE",
    Method.EAGLE: "EAGLE",
    Method.EAGLE3: "EAGLE3",
    Method.MTP: "NEXTN",
    Method.SUFFIX: "SUFFIX",  # SGLang itself has no such method
}


class SglangDialect:
    """SGLang with these facts."""

    name = "sglang"
    health = b""
    cache_reset: CacheReset | None = CacheReset(
        path="/flush_cache",
        methods=("GET", "POST"),
        done=Reply(200, _TEXT, b"Cache flushed.\n"),
        refused=Reply(400, _TEXT, b"Requests are running: the cache was not flushed.\n"),
    )

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts

    def statistics(self) -> SglangStatistics:
        """A new set of counters, at zero."""
        return SglangStatistics(self._facts)

    # Streams

    def opening(self, answer: Answer) -> bytes:
        """A chat's role event."""
        if answer.asked.route is not Route.CHAT:
            return b""
        choice = _chat_choice(answer, {"reasoning_content": None, "role": "assistant", "content": ""})
        if answer.asked.return_token_ids:
            choice["prompt_token_ids"] = answer.asked.prompt_ids
        return sse(self._chunk(answer, [choice]))

    def part(self, answer: Answer, part: Part) -> bytes:
        """The event of one part. A chat has none for a part without text, unless its ids or log-probabilities count."""
        asked, text = answer.asked, text_of(answer, part)
        ids = answer.output.ids[part.start : part.stop] if asked.return_token_ids else None
        if asked.route is Route.COMPLETIONS:
            choice = _text_choice(answer, text, part)
            choice |= {"token_ids": ids, "prompt_token_ids": asked.prompt_ids if ids and not part.start else None}
        elif text or ids or asked.logprobs is not None:
            choice = _chat_choice(answer, {"reasoning_content": None, "content": text})
            if asked.logprobs is not None:
                choice["logprobs"] = chat_logprobs(answer.output, part.start, part.stop)
            if ids is not None:
                choice["token_ids"] = ids
        else:
            return b""
        chunk = self._chunk(answer, [choice])
        if asked.continuous_usage:
            chunk["usage"] = usage_at(answer, part.stop) | {"prompt_tokens_details": None, "reasoning_tokens": 0}
        return sse(chunk)

    def closing(self, answers: Sequence[Answer]) -> bytes:
        """The finish events of a chat's choices, then the request's own account of speculation and its usage, each if
        asked for, in events of their own, and the end marker.
        """
        first, events = answers[0], []
        if first.asked.route is Route.CHAT:
            for answer in answers:
                choice = _chat_choice(answer, {"reasoning_content": None})
                choice |= {"finish_reason": answer.output.finish_reason, "matched_stop": answer.output.stop_reason}
                events.append(self._chunk(answer, [choice]))
        if (extension := self._extension(answers)) is not None:
            events.append(self._chunk(first, []) | {"usage": None, "sglext": extension})
        if first.asked.include_usage:
            events.append(self._chunk(first, []) | {"usage": _usage(answers)})
        return b"".join([*map(sse, events), DONE])

    # Whole answers

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The body of an answer that is not streamed."""
        first, choices = answers[0], []
        for answer in answers:
            asked, output = answer.asked, answer.output
            everything = Part(0, len(output.ids), True)
            text, ids = text_of(answer, everything), output.ids if asked.return_token_ids else None
            if asked.route is Route.CHAT:
                message = {"role": "assistant", "content": text, "reasoning_content": None, "tool_calls": None}
                choice = {"index": answer.index, "message": message, "logprobs": None}
                choice |= {"finish_reason": output.finish_reason, "matched_stop": output.stop_reason}
                if asked.logprobs is not None:
                    choice["logprobs"] = chat_logprobs(output, 0, everything.stop)
                choice |= {"prompt_token_ids": asked.prompt_ids, "response_token_ids": ids} if ids is not None else {}
            else:
                choice = _text_choice(answer, text, everything)
                choice |= {"token_ids": ids, "prompt_token_ids": asked.prompt_ids if ids else None}
            choices.append(choice)
        kind = "chat.completion" if first.asked.route is Route.CHAT else "text_completion"
        whole = self._chunk(first, choices) | {"object": kind, "usage": _usage(answers)}
        whole["metadata"] = {"weight_version": "default"}
        if (extension := self._extension(answers)) is not None:
            whole["sglext"] = extension
        return encode(whole)

    # Errors

    def refusal(self, refused: RefusedError) -> bytes:
        """The body of an error response: flat, unlike OpenAI's."""
        return encode(flat_error(refused))

    def error_event(self, message: str) -> bytes:
        """The error of a stream that had begun, with the end marker."""
        return sse({"error": flat_error(RefusedError(500, "INTERNAL_SERVER_ERROR", message))}) + DONE

    # Pages

    def model_card(self, created_s: int) -> dict[str, Any]:
        """The served model."""
        return model_card(self._facts, created_s) | {"owned_by": "sglang"}

    def page(self, method: str, path: str, body: bytes, statistics: Statistics) -> Reply | None:
        """`/metrics`, `/server_info` and `/model_info`, both also under their old names."""
        assert isinstance(statistics, SglangStatistics)
        match method, path.partition("?")[0]:
            case "GET", "/metrics":
                return statistics.page()
            case "GET", "/server_info" | "/get_server_info":
                return json_page(self._server_info(statistics))
            case "GET", "/model_info" | "/get_model_info":
                model = self._facts.model
                return json_page({"model_path": model, "tokenizer_path": model, "is_generation": True})
        return None

    # Pieces

    def _chunk(self, answer: Answer, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if answer.asked.route is Route.CHAT else "text_completion"
        return {
            "id": answer.asked.request_id,
            "object": kind,
            "created": answer.created_s,
            "model": self._facts.model,
            "choices": choices,
        }

    def _extension(self, answers: Sequence[Answer]) -> dict[str, Any] | None:
        """`sglext`: the account of one choice as an object, of several as a list; None where there is none."""
        speculator = self._facts.speculator
        if speculator is None or not answers[0].asked.fields.get("return_spec_tokens_details"):
            return None
        told = [_acceptance(answer, speculator.draft_tokens) for answer in answers if answer.decode_steps]
        if not told:
            return None
        return {"spec_tokens_details": told if answers[0].asked.n > 1 else told[0]}

    def _server_info(self, statistics: SglangStatistics) -> dict[str, Any]:
        facts = self._facts
        arguments: dict[str, Any] = {
            "model_path": facts.model,
            "served_model_name": facts.model,
            "context_length": facts.max_model_len,
            "max_running_requests": facts.max_sequences,
            "chunked_prefill_size": facts.token_budget,
            "page_size": facts.block_tokens,
            "max_total_num_tokens": facts.kv_blocks * facts.block_tokens,
            "disable_radix_cache": not facts.prefix_caching,
            "decode_log_interval": DECODE_LOG_INTERVAL,
            "enable_metrics": True,
            "speculative_algorithm": None,
            "speculative_draft_model_path": None,
            "speculative_num_steps": None,
            "speculative_eagle_topk": None,
            "speculative_num_draft_tokens": None,
            "speculative_accept_threshold_single": 1.0,
            "speculative_accept_threshold_acc": 1.0,
        }
        if facts.speculator is not None:
            arguments |= {
                "speculative_algorithm": _ALGORITHMS[facts.speculator.method],
                "speculative_num_steps": facts.speculator.draft_tokens,
                "speculative_eagle_topk": 1,
                "speculative_num_draft_tokens": facts.speculator.draft_tokens + 1,
            }
        told = {"internal_states": [statistics.internal_state()], "version": VERSION}
        return arguments | dict(facts.speculation) | told


def _usage(answers: Sequence[Answer]) -> dict[str, Any]:
    """Usage as a server with `--enable-cache-report` has it: cached tokens where there are some."""
    cached = answers[0].cached_tokens
    details = {"cached_tokens": cached} if cached else None
    return usage_of(answers) | {"prompt_tokens_details": details, "reasoning_tokens": 0}


def _chat_choice(answer: Answer, delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": answer.index, "delta": delta, "logprobs": None, "finish_reason": None, "matched_stop": None}


def _text_choice(answer: Answer, text: str, part: Part) -> dict[str, Any]:
    output = answer.output
    logprobs = None
    if answer.asked.logprobs is not None:
        logprobs = completions_logprobs(output, part.start, part.stop)
    return {
        "index": answer.index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": output.finish_reason if part.finished else None,
        "matched_stop": output.stop_reason if part.finished else None,
    }


def _acceptance(answer: Answer, draft_tokens: int) -> dict[str, Any]:
    """A request's `spec_tokens_details`. Every decode step is a verify call; one without a draft accepted nothing."""
    calls, correct = answer.decode_steps, sum(answer.accepted)
    proposed = calls * draft_tokens
    histogram = [0] * (max(answer.accepted, default=0) + 1)
    histogram[0] = calls - len(answer.accepted)
    for accepted in answer.accepted:
        histogram[accepted] += 1
    return {
        "spec_accept_rate": correct / proposed,
        "spec_accept_length": answer.emitted / calls,
        "spec_cap_length": 0.0,
        "spec_block_accept_length": 0.0,
        "spec_num_correct_drafts": correct,
        "spec_num_proposed_drafts": proposed,
        "spec_verify_ct": calls,
        "spec_correct_drafts_histogram": histogram,
        "spec_cap_lens_histogram": [],
    }
