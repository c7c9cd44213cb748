"""What vLLM 0.32 looks like from outside: its events and bodies key by key, its errors and its pages.

The shapes are those of recorded answers (`tests/golden/streams/vllm_*`); a field that vLLM sends as null is sent as
null, one that it leaves out is left out, and the two routes differ in that as they do there.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from loadgen.sim.server.dialect import CacheReset, Reply, ServerFacts, Statistics
from loadgen.sim.server.events import DONE, encode, model_card, sse, text_of, text_offsets
from loadgen.sim.server.exchange import Answer, Output, Part, RefusedError, Route
from loadgen.sim.server.vllm_info import VERSION, server_info
from loadgen.sim.server.vllm_statistics import VllmStatistics

_JSON = "application/json"
_ID_PREFIX = {Route.CHAT: "chatcmpl-", Route.COMPLETIONS: "cmpl-"}
# A part is written at the rate of tokens: one template a route, filled with encoded pieces.
_OPENING = (
    b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,'
    b'"choices":[{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]%b,'
    b'"prompt_token_ids":%b,"prompt_text":null}\n\n'
)
_CHAT_PART = (
    b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,'
    b'"choices":[{"index":%d,"delta":{"content":%b},"logprobs":%b,"finish_reason":%b,"token_ids":%b}]%b}\n\n'
)
_COMPLETIONS_PART = (
    b'data: {"id":%b,"object":"text_completion","created":%d,"model":%b,'
    b'"choices":[{"index":%d,"text":%b,"logprobs":%b,"finish_reason":%b,"prompt_token_ids":%b,"token_ids":%b}]%b}\n\n'
)
_UNTIMED = dict.fromkeys(
    ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms", "tokens_per_second")
)
"""A request's timings, which a server reports only when it was started with `--enable-per-request-metrics`."""


class VllmDialect:
    """vLLM with these facts. `created` and ids come with the answers."""

    name = "vllm"
    health = b""
    cache_reset: CacheReset | None = CacheReset(
        path="/reset_prefix_cache",
        methods=("POST",),
        done=Reply(200, _JSON, encode({"success": True})),
        refused=Reply(200, _JSON, encode({"success": False})),
    )

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._model = encode(facts.model)
        told = facts.speculator is not None and facts.per_request_speculation is not None
        self._acceptance_told = told
        words = json.dumps([facts.model, facts.max_model_len, dict(facts.speculation)], sort_keys=True, default=str)
        self._fingerprint = f"vllm-{VERSION}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"

    def statistics(self) -> VllmStatistics:
        """A new set of counters, at zero."""
        return VllmStatistics(self._facts)

    # Streams

    def opening(self, answer: Answer) -> bytes:
        """The role event of a choice of a chat; all of them go before the first choice's first part."""
        asked = answer.asked
        if asked.route is not Route.CHAT:
            return b""
        return _OPENING % (
            encode(self._id(answer)),
            answer.created_s,
            self._model,
            answer.index,
            _continuous_usage(answer, 0) if asked.continuous_usage else b"",
            encode(asked.prompt_ids) if asked.return_token_ids else b"null",
        )

    def part(self, answer: Answer, part: Part) -> bytes:
        """The event of one part. Without a usage event to come, the last one carries the fingerprint."""
        asked, output = answer.asked, answer.output
        ids = encode(output.ids[part.start : part.stop]) if asked.return_token_ids else b"null"
        after = _continuous_usage(answer, part.stop) if asked.continuous_usage else b""
        finish = b"null"
        if part.finished:
            finish = b'%b,"stop_reason":%b' % (encode(output.finish_reason), encode(output.stop_reason))
            if not asked.include_usage:
                after += b',"system_fingerprint":%b' % encode(self._fingerprint)
        text = encode(text_of(answer, part))
        head = (encode(self._id(answer)), answer.created_s, self._model, answer.index, text)
        if asked.route is Route.CHAT:
            logprobs = b"null" if asked.logprobs is None else encode(_chat_logprobs(output, part.start, part.stop))
            return _CHAT_PART % (*head, logprobs, finish, ids, after)
        logprobs = b"null" if asked.logprobs is None else encode(_text_logprobs(output, part.start, part.stop))
        prompt = encode(asked.prompt_ids) if asked.return_token_ids and not part.start else b"null"
        finish = finish if part.finished else b'null,"stop_reason":null'
        return _COMPLETIONS_PART % (*head, logprobs, finish, prompt, ids, after)

    def closing(self, answers: Sequence[Answer]) -> bytes:
        """The usage event, if asked for, with the acceptance of a single choice; then the end marker."""
        first = answers[0]
        if not first.asked.include_usage:
            return DONE
        kind = "chat.completion.chunk" if first.asked.route is Route.CHAT else "text_completion"
        usage = self._head(first, kind) | {
            "choices": [],
            "usage": _usage(answers) | {"prompt_tokens_details": self._prompt_details(first)},
            "system_fingerprint": self._fingerprint,
        }
        if self._acceptance_told and len(answers) == 1:
            acceptance = {name: value for name, value in self._acceptance(first).items() if value is not None}
            usage["metrics"] = {"speculative_decoding": acceptance}
        return sse(usage) + DONE

    # Whole answers

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The body of an answer that is not streamed, with every field that vLLM has, most of them null."""
        first = answers[0]
        prompt_ids = first.asked.prompt_ids if first.asked.return_token_ids else None
        unused: dict[str, Any] = {"kv_transfer_params": None, "ec_transfer_params": None}
        if first.asked.route is Route.CHAT:
            kind, choices = "chat.completion", [_chat_choice(answer) for answer in answers]
            unused = {"prompt_logprobs": None, "prompt_token_ids": prompt_ids, "prompt_text": None} | unused
        else:
            kind, choices = "text_completion", [_text_choice(answer, prompt_ids) for answer in answers]
        no_details = {"cached_tokens": None, "created_cache_tokens": None, "multimodal_tokens": None}
        usage = _usage(answers) | {
            "prompt_tokens_details": no_details | self._prompt_details(first),
            "completion_tokens_details": None,
        }
        metrics = None
        if self._acceptance_told and len(answers) == 1:
            metrics = _UNTIMED | {"speculative_decoding": self._acceptance(first)}
        head = {"choices": choices, "service_tier": None, "system_fingerprint": self._fingerprint, "usage": usage}
        return encode(self._head(first, kind) | head | unused | {"metrics": metrics})

    # Errors

    def refusal(self, refused: RefusedError) -> bytes:
        """The body of an error response."""
        return encode(_error(refused.message, refused.kind, refused.param, refused.status))

    def error_event(self, message: str) -> bytes:
        """The error of a stream that had begun, with the end marker; vLLM writes this one with spaces."""
        event = json.dumps(_error(message, "InternalServerError", None, 500))
        return b"data: %b\n\n%b" % (event.encode(), DONE)

    # Pages

    def model_card(self, created_s: int) -> dict[str, Any]:
        """The served model, with what everybody may do with it."""
        permission = {
            "id": f"modelperm-{self._fingerprint}",
            "object": "model_permission",
            "created": created_s,
            "allow_create_engine": False,
            "allow_sampling": True,
            "allow_logprobs": True,
            "allow_search_indices": False,
            "allow_view": True,
            "allow_fine_tuning": False,
            "organization": "*",
            "group": None,
            "is_blocking": False,
        }
        return model_card(self._facts, created_s) | {"owned_by": "vllm", "permission": [permission]}

    def page(self, method: str, path: str, body: bytes, statistics: Statistics) -> Reply | None:
        """`/metrics`, `/version`, `/server_info` (the configuration as text, or as JSON if asked) and `/ping`."""
        name, _, query = path.partition("?")
        match method, name:
            case "GET", "/metrics" if isinstance(statistics, VllmStatistics):
                return Reply(200, CONTENT_TYPE_LATEST, statistics.exposition())
            case "GET", "/version":
                return Reply(200, _JSON, encode({"version": VERSION}))
            case "GET", "/server_info":
                return Reply(200, _JSON, encode(server_info(self._facts, as_json="config_format=json" in query)))
            case (("GET" | "POST"), "/ping"):
                return Reply(200, "", b"")
        return None

    # Pieces

    def _id(self, answer: Answer) -> str:
        return _ID_PREFIX[answer.asked.route] + answer.asked.request_id

    def _head(self, answer: Answer, kind: str) -> dict[str, Any]:
        return {"id": self._id(answer), "object": kind, "created": answer.created_s, "model": self._facts.model}

    def _prompt_details(self, answer: Answer) -> dict[str, int]:
        """Prompt tokens found in the prefix cache; for a chat also those that its prompt added to it."""
        details = {"cached_tokens": answer.cached_tokens}
        if answer.asked.route is Route.CHAT:
            size = self._facts.block_tokens
            full = len(answer.asked.prompt_ids) // size * size if self._facts.prefix_caching else 0
            details["created_cache_tokens"] = max(full - answer.cached_tokens, 0)
        return details

    def _acceptance(self, answer: Answer) -> dict[str, Any]:
        """`metrics.speculative_decoding`: over steps that drafted; 1 and 0 where there was none, as vLLM has it."""
        speculator = self._facts.speculator
        assert speculator is not None
        histogram = [0] * (speculator.draft_tokens + 1)
        for accepted in answer.accepted:
            histogram[accepted] += 1
        steps, accepted, drafted = len(answer.accepted), sum(answer.accepted), sum(answer.drafted)
        told = {
            "mean_acceptance_length": 1 + accepted / steps if steps else 1.0,
            "draft_acceptance_rate": accepted / drafted if drafted else 0.0,
            "acceptance_histogram": histogram,
            "num_spec_steps": steps,
            "num_accepted_draft_tokens": accepted,
            "num_draft_tokens": drafted,
            "num_spec_tokens": speculator.draft_tokens,
        }
        detailed = steps and self._facts.per_request_speculation == "detailed"
        each = (answer.accepted, answer.drafted) if detailed else (None, None)
        return told | dict(zip(("per_step_accepted", "per_step_drafted"), each, strict=True))


def _error(message: str, kind: str, param: str | None, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _usage(answers: Sequence[Answer]) -> dict[str, Any]:
    """Tokens of all choices; the prompt counts once."""
    prompt, completion = len(answers[0].asked.prompt_ids), sum(answer.emitted for answer in answers)
    return {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}


def _continuous_usage(answer: Answer, completion: int) -> bytes:
    """The counts so far of one choice, as every event has them if asked."""
    prompt = len(answer.asked.prompt_ids)
    details = b',"completion_tokens_details":null' if answer.asked.route is Route.CHAT else b""
    return b',"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d%b}' % (
        prompt,
        prompt + completion,
        completion,
        details,
    )


def _chat_choice(answer: Answer) -> dict[str, Any]:
    asked, output = answer.asked, answer.output
    empty = dict.fromkeys(("refusal", "annotations", "audio", "function_call", "reasoning"))
    return {
        "index": answer.index,
        "message": {"role": "assistant", "content": "".join(output.texts)} | empty,
        "logprobs": None if asked.logprobs is None else _chat_logprobs(output, 0, len(output.ids)),
        "finish_reason": output.finish_reason,
        "stop_reason": output.stop_reason,
        "token_ids": output.ids if asked.return_token_ids else None,
        "routed_experts": None,
    }


def _text_choice(answer: Answer, prompt_ids: tuple[int, ...] | None) -> dict[str, Any]:
    asked, output = answer.asked, answer.output
    return {
        "index": answer.index,
        "text": "".join(output.texts),
        "logprobs": None if asked.logprobs is None else _text_logprobs(output, 0, len(output.ids)),
        "finish_reason": output.finish_reason,
        "stop_reason": output.stop_reason,
        "token_ids": output.ids if asked.return_token_ids else None,
        "prompt_logprobs": None,
        "prompt_token_ids": prompt_ids,
        "routed_experts": None,
    }


def _chat_logprobs(output: Output, start: int, stop: int) -> dict[str, Any]:
    content = []
    for place in range(start, stop):
        candidates = _candidates(output, place)
        asked = len(output.top_logprobs[place]) if output.top_logprobs else 0
        told = [_chat_logprob(text, logprob) for text, logprob in candidates.items()]
        content.append(told[0] | {"top_logprobs": told[:asked]})
    return {"content": content}


def _chat_logprob(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": logprob, "bytes": list(text.encode())}


def _text_logprobs(output: Output, start: int, stop: int) -> dict[str, Any]:
    candidates = [_candidates(output, place) for place in range(start, stop)]
    return {
        "text_offset": text_offsets(output, start, stop),
        "token_logprobs": [_floor(logprob) for logprob in output.logprobs[start:stop]],
        "tokens": output.tokens[start:stop],
        "top_logprobs": candidates,
    }


def _candidates(output: Output, place: int) -> dict[str, float]:
    """The token at this place, then the alternatives asked for, by text."""
    others = output.top_logprobs[place] if output.top_logprobs else ()
    own = (output.tokens[place], output.logprobs[place])
    return {text: _floor(logprob) for text, logprob in (own, *others)}


def _floor(logprob: float) -> float:
    """JSON has no minus infinity; vLLM ends at this."""
    return max(logprob, -9999.0)
