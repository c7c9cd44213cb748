"""What llama.cpp's server looks like from outside.

From its source: the events and `timings` (`tools/server/server-task.cpp`). From its README: the pages and the names of
the metrics, with the counters of speculation that came in August 2026. Not confirmed: that the two gauges of throughput
average over the whole time since the start, and the layout of several choices that are not streamed.

What a reader of its figures has to know, and finds here: a step's tokens come as one event each, written together;
the counters of output tokens and of speculation rise when a request has finished; those of speculation are there, at
zero, without speculation; `/props` says that there is none even where there is, `/slots` tells.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from loadgen.core.simulation.step import Step
from loadgen.core.units import NS_PER_S, seconds
from loadgen.sim.server.dialect import CacheReset, Load, Reply, ServerFacts, Statistics
from loadgen.sim.server.events import DONE, chat_logprobs, encode, model_card, sse, usage_of
from loadgen.sim.server.exchange import Answer, Part, RefusedError, Route
from loadgen.sim.server.pages import json_page

BUILD = "b10000-00000000"
"""Build number and commit as the server gives them; the number is none of a release."""

_PREFIX = {Route.CHAT: "chatcmpl-", Route.COMPLETIONS: "cmpl-"}
_ERRORS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 503: "unavailable_error"}
_LEAST_MS = 0.001  # a duration is at least one microsecond, so that there is a rate


class LlamacppDialect:
    """llama.cpp with these facts; a slot for each request that the engine may run at once."""

    name = "llamacpp"
    health = b'{"status":"ok"}'
    cache_reset: CacheReset | None = None

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts

    def statistics(self) -> "LlamacppStatistics":
        """A new set of counters, at zero."""
        return LlamacppStatistics(self._facts)

    # Streams

    def opening(self, answer: Answer) -> bytes:
        """A chat's role event."""
        if answer.asked.route is not Route.CHAT:
            return b""
        return sse(self._chat_chunk(answer, None, {"role": "assistant", "content": None}))

    def part(self, answer: Answer, part: Part) -> bytes:
        """One event a token, in a chat only for tokens with text; after the last token those that end this choice."""
        chat, told = answer.asked.route is Route.CHAT, answer.asked.logprobs is not None
        events = []
        for place in range(part.start, part.stop):
            text = answer.output.texts[place]
            if chat and not text:
                continue
            event = self._chat_chunk(answer, None, {"content": text}) if chat else self._text_chunk(answer, text, None)
            if told:
                event["choices"][0]["logprobs"] = chat_logprobs(answer.output, place, place + 1)
            events.append(sse(event))
        if part.finished:
            events.extend(map(sse, self._last_events(answer)))
        return b"".join(events)

    def closing(self, answers: Sequence[Answer]) -> bytes:
        """The end marker; each choice has brought its own usage."""
        return DONE

    def _last_events(self, answer: Answer) -> Iterator[dict[str, Any]]:
        """The finish event and a chat's usage event, if asked for; the last of them has the timings."""
        finish, timings = answer.output.finish_reason, {"timings": timings_of(answer)}
        if answer.asked.route is Route.COMPLETIONS:
            yield self._text_chunk(answer, "", finish) | {"usage": _usage([answer])} | timings
        elif answer.asked.include_usage:
            yield self._chat_chunk(answer, finish, {})
            yield self._chat_chunk(answer, None, {}) | {"choices": [], "usage": _usage([answer])} | timings
        else:
            yield self._chat_chunk(answer, finish, {}) | timings

    # Whole answers

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The body of an answer that is not streamed; the timings are those of the first choice."""
        first, chat = answers[0], answers[0].asked.route is Route.CHAT
        choices: list[dict[str, Any]] = []
        for answer in answers:
            output, text = answer.output, "".join(answer.output.texts)
            told = chat_logprobs(output, 0, len(output.ids)) if answer.asked.logprobs is not None else None
            choice: dict[str, Any] = {"finish_reason": output.finish_reason, "index": answer.index}
            choice |= {"message": {"role": "assistant", "content": text}} if chat else {"text": text, "logprobs": told}
            choices.append(choice | {"logprobs": told} if told is not None else choice)
        kind = "chat.completion" if chat else "text_completion"
        counts = {"usage": _usage(answers), "timings": timings_of(first)}
        return encode({"choices": choices} | self._head(first, kind) | counts)

    # Errors

    def refusal(self, refused: RefusedError) -> bytes:
        """The body of an error response."""
        return encode(_error(refused.status, refused.message))

    def error_event(self, message: str) -> bytes:
        """The error of a stream that had begun. It ends the stream without an end marker."""
        return sse(_error(500, message))

    # Pages

    def model_card(self, created_s: int) -> dict[str, Any]:
        """The served model."""
        return model_card(self._facts, created_s) | {"owned_by": "llamacpp"}

    def page(self, method: str, path: str, body: bytes, statistics: Statistics) -> Reply | None:
        """`/metrics`, `/props` and `/slots`."""
        assert isinstance(statistics, LlamacppStatistics)
        match method, path.partition("?")[0]:
            case "GET", "/metrics":
                return Reply(200, "text/plain; version=0.0.4", statistics.exposition().encode())
            case "GET", "/props":
                return json_page(self._props())
            case "GET", "/slots":
                return json_page(statistics.slots())
        return None

    def _props(self) -> dict[str, Any]:
        return {
            "default_generation_settings": {
                "id": 0,
                "id_task": -1,
                "n_ctx": self._facts.max_model_len,
                "speculative": False,
                "is_processing": False,
            },
            "total_slots": self._facts.max_sequences,
            "model_path": self._facts.model,
            "modalities": {"vision": False},
            "build_info": BUILD,
            "is_sleeping": False,
        }

    # Pieces

    def _head(self, answer: Answer, kind: str) -> dict[str, Any]:
        return {
            "created": answer.created_s,
            "id": _PREFIX[answer.asked.route] + answer.asked.request_id,
            "model": self._facts.model,
            "system_fingerprint": BUILD,
            "object": kind,
        }

    def _chat_chunk(self, answer: Answer, finish: str | None, delta: dict[str, Any]) -> dict[str, Any]:
        choice = {"finish_reason": finish, "index": answer.index, "delta": delta}
        return {"choices": [choice]} | self._head(answer, "chat.completion.chunk")

    def _text_chunk(self, answer: Answer, text: str, finish: str | None) -> dict[str, Any]:
        choice = {"text": text, "index": answer.index, "logprobs": None, "finish_reason": finish}
        return {"choices": [choice]} | self._head(answer, "text_completion")


class LlamacppStatistics:
    """llama.cpp's counters since its start, and who is in which slot."""

    def __init__(self, facts: ServerFacts) -> None:
        self._facts = facts
        self._answers: dict[int, Answer] = {}
        self._slots: dict[int, int] = {}
        self._waiting = 0
        self._decodes = 0
        self._busy_slots = 0
        self._most_tokens = 0
        self._prompt_tokens = 0
        self._prompt_ns = 0
        self._predicted_tokens = 0
        self._predicted_ns = 0
        self._drafts = 0
        self._drafted = 0
        self._survivors = [0] * (0 if facts.speculator is None else facts.speculator.draft_tokens)

    def received(self, answer: Answer) -> None:
        """It waits for a slot."""
        self._answers[answer.key] = answer

    def stepped(self, step: Step, parts: Sequence[tuple[Answer, Part]], load: Load) -> None:
        """Slots of those admitted, and the counters of prompts and decode calls."""
        for key in step.cached_tokens:
            if key in self._answers and key not in self._slots:
                taken = set(self._slots.values())
                self._slots[key] = next(slot for slot in count() if slot not in taken)
        self._waiting = load.waiting
        self._decodes += 1
        self._busy_slots += len(self._slots)
        for answer, part in parts:
            self._most_tokens = max(self._most_tokens, len(answer.asked.prompt_ids) + part.stop)
            if not part.start:
                self._prompt_tokens += len(answer.asked.prompt_ids) - answer.cached_tokens
                self._prompt_ns += _between_ns(answer.scheduled_ns, answer.first_ns)

    def finished(self, answer: Answer, reason: str) -> None:
        """Its slot is free; its tokens count unless its client left."""
        self._answers.pop(answer.key, None)
        self._slots.pop(answer.key, None)
        if reason == "abort":
            return
        self._predicted_tokens += answer.emitted
        self._predicted_ns += _between_ns(answer.first_ns, answer.last_ns)
        self._drafts += len(answer.drafted)
        self._drafted += sum(answer.drafted)
        for accepted in answer.accepted:
            for position in range(accepted):
                self._survivors[position] += 1

    def slots(self) -> list[dict[str, Any]]:
        """`/slots`: all of them, busy or not."""
        speculative = self._facts.speculator is not None
        busy = {slot: self._answers[key] for key, slot in self._slots.items()}
        told = []
        for number in range(self._facts.max_sequences):
            answer = busy.get(number)
            slot: dict[str, Any] = {"id": number, "n_ctx": self._facts.max_model_len, "speculative": speculative}
            slot |= {"is_processing": answer is not None}
            if answer is not None:
                left = len(answer.output.ids) - answer.emitted
                decoded = {"has_next_token": left > 0, "n_remain": left, "n_decoded": answer.emitted}
                slot |= {"id_task": answer.key, "next_token": decoded}
            told.append(slot)
        return told

    def exposition(self) -> str:
        """`/metrics`. Written by hand: one of its counters has a name that no client library would give it."""
        prompt_s, predicted_s = seconds(self._prompt_ns), seconds(self._predicted_ns)
        metrics: list[tuple[str, str, str, float]] = [
            ("prompt_tokens_total", "counter", "Number of prompt tokens processed.", self._prompt_tokens),
            ("prompt_seconds_total", "counter", "Prompt process time", prompt_s),
            ("tokens_predicted_total", "counter", "Number of generation tokens processed.", self._predicted_tokens),
            ("tokens_predicted_seconds_total", "counter", "Predict process time", predicted_s),
            ("n_decode_total", "counter", "Total number of llama_decode() calls", self._decodes),
            ("n_tokens_max", "counter", "Largest observed n_tokens.", self._most_tokens),
            ("spec_decode_num_draft_tokens_total", "counter", "Draft tokens generated.", self._drafted),
            ("spec_decode_num_accepted_tokens_total", "counter", "Draft tokens accepted.", sum(self._survivors)),
            ("spec_decode_num_drafts_total", "counter", "Verification steps with a draft.", self._drafts),
            ("prompt_tokens_seconds", "gauge", "Average prompt tokens/s.", _rate(self._prompt_tokens, prompt_s)),
            ("predicted_tokens_seconds", "gauge", "Average tokens/s.", _rate(self._predicted_tokens, predicted_s)),
            ("requests_processing", "gauge", "Number of requests processing.", len(self._slots)),
            ("requests_deferred", "gauge", "Number of requests deferred.", self._waiting),
            ("n_busy_slots_per_decode", "gauge", "Busy slots a call.", _rate(self._busy_slots, self._decodes)),
        ]
        lines = []
        for name, kind, says, value in metrics:
            lines += [f"# HELP llamacpp:{name} {says}", f"# TYPE llamacpp:{name} {kind}", f"llamacpp:{name} {value}"]
        if self._drafts:
            name = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"
            lines += [f"# HELP {name} Accepted tokens by draft position.", f"# TYPE {name} counter"]
            lines += [f'{name}{{position="{position}"}} {steps}' for position, steps in enumerate(self._survivors)]
        return "\n".join([*lines, ""])


def timings_of(answer: Answer) -> dict[str, Any]:
    """The server's account of one answer: tokens, ms and rates of prompt and output, and drafts if there were any."""
    prompt, predicted = len(answer.asked.prompt_ids) - answer.cached_tokens, answer.emitted
    prompt_ms = _milliseconds(answer.scheduled_ns, answer.first_ns)
    predicted_ms = _milliseconds(answer.first_ns, answer.last_ns)
    timings: dict[str, Any] = {
        "cache_n": answer.cached_tokens,
        "prompt_n": prompt,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / prompt,
        "prompt_per_second": 1000 * prompt / prompt_ms,
        "predicted_n": predicted,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": predicted_ms / predicted,
        "predicted_per_second": 1000 * predicted / predicted_ms,
    }
    if answer.drafted:
        timings |= {"draft_n": sum(answer.drafted), "draft_n_accepted": sum(answer.accepted)}
    return timings


def _usage(answers: Sequence[Answer]) -> dict[str, Any]:
    return usage_of(answers) | {"prompt_tokens_details": {"cached_tokens": answers[0].cached_tokens}}


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "type": _ERRORS.get(status, "server_error")}}


def _between_ns(start_ns: int | None, end_ns: int | None) -> int:
    assert start_ns is not None
    assert end_ns is not None
    return end_ns - start_ns


def _milliseconds(start_ns: int | None, end_ns: int | None) -> float:
    return max(_between_ns(start_ns, end_ns) * 1000 / NS_PER_S, _LEAST_MS)


def _rate(amount: float, by: float) -> float:
    return amount / by if by else 0
