"""Pieces of an OpenAI-compatible response body, each with its arrival, to one `Answer`."""

import json
from typing import TYPE_CHECKING, Any

import msgspec

from loadgen.core.record import RequestSpeculation
from loadgen.core.request import Endpoint
from loadgen.core.stream import wire
from loadgen.core.stream.answer import Answer, Note, Usage
from loadgen.core.stream.sse import MAX_EVENT_BYTES, SseDecoder, SseEvent

if TYPE_CHECKING:
    from collections.abc import Callable

BODY_START_BYTES = 2048
"""How much of the beginning of a body is kept for the message of a failure."""
_EXCERPT = 120
_FINISH_REASON_LIMIT = 64
_BROKEN_OFF = ("error", "abort")
"""Finish reasons by which a server says that it gave up (OpenAI-compatible routers, vLLM; SGLang)."""

_FINAL_RESPONSE_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

_decode_chunk = msgspec.json.Decoder(wire.Chunk).decode
_decode_response_event = msgspec.json.Decoder(wire.ResponseEvent).decode
_REASONING, _OUTPUT = 1, 2  # what an event carried, as flags
_NOT_TYPED = (msgspec.DecodeError, RecursionError)


class _Tally:
    """Tokens of a stream by one way of counting: a running total, and what it was at each token-bearing event.

    `complete` until a token-bearing event lacks the count, or a running total goes back.
    """

    __slots__ = ("complete", "marks", "total")

    def __init__(self) -> None:
        self.complete = True
        self.total = 0
        self.marks: list[int] = []

    def add(self, tokens: int | None, bearing: bool) -> None:
        """One event with that many tokens, None when it does not say."""
        if tokens is not None:
            self.total += tokens
            if bearing and self.complete:
                self.marks.append(self.total)
        elif bearing:
            self.complete = False

    def reach(self, total: int | None, bearing: bool) -> None:
        """One event that gives the total so far, None when it does not."""
        if total is not None and total < self.total:
            self.complete = False
        self.add(None if total is None else total - self.total, bearing)


class AnswerDecoder:
    """Takes the pieces of one response body as they came and says at the end what the answer was.

    The content type decides how the body is read: `text/event-stream` as a stream, `application/json` as one object;
    without a content type its first character decides; anything else is malformed. A server's fault never raises: it is
    `error` or `malformed` of the answer. An event spread over several pieces has the stamp of the piece that completes
    it. What follows `[DONE]` is ignored. Text is kept only with `keep_text`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        keep_text: bool,
        content_type: str | None = None,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self._endpoint, self._keep_text, self._max_event_bytes = endpoint, keep_text, max_event_bytes
        self._content_type = (content_type or "").partition(";")[0].strip().lower()
        self._read: Callable[[int, bytes], None] = self._first_pieces
        self._sse = SseDecoder(max_event_bytes)
        self._take = self._take_response_event if endpoint is Endpoint.RESPONSES else self._take_chunk
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._start = b""
        self._streamed = True
        self._done = False
        self._ended = False  # the endpoint's final event or the whole object was seen
        self._malformed: str | None = None
        self._error: str | None = None
        self._notes: set[Note] = set()
        self._event_ns: list[int] = []
        self._first_output: int | None = None
        self._last_ns: int | None = None
        self._reasoning_seen = False
        self._by_ids, self._by_usage, self._by_logprobs = _Tally(), _Tally(), _Tally()
        self._counting = True  # one of them still has every token-bearing event
        self._input_tokens: int | None = None
        self._cached_tokens: int | None = None
        self._output_tokens: int | None = None
        self._reasoning_tokens: int | None = None
        self._finish_reasons: dict[int, str] = {}
        self._choices: set[int] = set()
        self._call_keys: dict[object, dict[str, Any]] = {}
        self._text: list[str] = []
        self._content: list[str] = []
        self._speculation: RequestSpeculation | None = None

    @property
    def events(self) -> int:
        """Token-bearing events so far."""
        return len(self._event_ns)

    @property
    def output_tokens_so_far(self) -> int:
        """Output tokens that the server has told of so far; 0 as long as it tells of none."""
        return self._by_ids.total or self._output_tokens or self._by_logprobs.total

    def feed(self, stamp_ns: int, data: bytes) -> None:
        """Takes the next piece of the body, which arrived at `stamp_ns`."""
        if len(self._start) < BODY_START_BYTES:
            self._start += data[: BODY_START_BYTES - len(self._start)]
        self._read(stamp_ns, data)

    def finish(self) -> Answer:
        """The answer, once the body has ended."""
        if not self._streamed and self._malformed is None:
            self._take_whole(b"".join(self._body))
        elif self._sse.remainder.strip() and not self._done:
            self._notes.add(Note.UNTERMINATED_EVENT)
        finished = bool(self._finish_reasons) and self._finish_reasons.keys() >= self._choices
        terminal = self._done or self._ended or finished
        usage = self._checked_usage()
        event_tokens, stream_tokens = self._token_counts(usage.output_tokens)
        if terminal and self._error is None:
            if not self._done and self._streamed and self._endpoint is not Endpoint.RESPONSES:
                self._notes.add(Note.NO_DONE)
            if not self._finish_reasons:
                self._notes.add(Note.NO_FINISH_REASON)
        if len(self._choices) > 1:
            self._notes.add(Note.SEVERAL_CHOICES)
        whole = terminal and self._error is None and self._malformed is None
        return Answer(
            event_ns=tuple(self._event_ns),
            event_tokens=event_tokens,
            stream_tokens=stream_tokens,
            first_output=self._first_output,
            last_ns=self._last_ns,
            usage=usage,
            finish_reason=self._finish_reasons[min(self._finish_reasons)] if self._finish_reasons else None,
            tool_calls=len(self._call_keys) or None,
            text="".join(self._text) if self._keep_text else None,
            assistant_message=self._assistant_message(),
            speculation=self._speculation,
            terminal=terminal,
            error=self._error,
            malformed=self._malformed,
            body_start=None if whole else self._start.decode("utf-8", "replace"),
            streamed=self._streamed,
            notes=tuple(note for note in Note if note in self._notes),
        )

    # How the body is read

    def _first_pieces(self, stamp_ns: int, data: bytes) -> None:
        """Chooses a reader; before that, without a content type, waits for a character that tells."""
        kind = self._content_type
        if not kind:
            self._body.append(data)
            data = b"".join(self._body)
            first = data.lstrip()[:1]
            if not first:
                return
            self._body.clear()
            kind = {b"{": "application/json", b"[": "application/json", b"<": "markup"}.get(first, "text/event-stream")
        if kind == "text/event-stream":
            self._read = self._read_stream
        elif kind == "application/json" or kind.endswith("+json"):
            self._streamed = False
            self._read = self._read_whole
        else:
            self._read = self._read_nothing
            self._malformed = f"expected text/event-stream or application/json, got {kind}"
        self._read(stamp_ns, data)

    def _read_stream(self, stamp_ns: int, data: bytes) -> None:
        for event in self._sse.feed(data):
            if event.data == b"[DONE]":
                self._done = True
                self._read = self._read_nothing
                return
            self._take(stamp_ns, event)
        if self._sse.overflowed:
            self._read = self._read_nothing
            self._fail(f"an event is longer than the limit of {self._max_event_bytes} bytes")

    def _read_whole(self, stamp_ns: int, data: bytes) -> None:
        if data:
            self._last_ns = stamp_ns
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > self._max_event_bytes:
            self._body.clear()
            self._read = self._read_nothing
            self._fail(f"the body is longer than the limit of {self._max_event_bytes} bytes")

    def _read_nothing(self, stamp_ns: int, data: bytes) -> None:
        """The rest of the body has no say."""

    def _fail(self, reason: str, data: bytes = b"") -> None:
        if self._malformed is None:
            begin = data[:_EXCERPT].decode("utf-8", "replace")
            self._malformed = f"{reason}: {begin}" if begin else reason

    def _leniently(self, data: bytes, shape: type[wire.Shape]) -> wire.Shape | None:
        try:
            value, repaired = wire.read_leniently(data, shape)
        except wire.UnreadableError as fault:
            self._fail(str(fault), data)
            return None
        self._notes.add(Note.REPAIRED_TEXT if repaired else Note.ODD_FIELDS)
        return value

    # Chat and completions

    def _take_chunk(self, stamp_ns: int, event: SseEvent) -> None:
        data = event.data
        try:
            chunk = _decode_chunk(data)
        except _NOT_TYPED:
            if not self._worth_reading(event):
                return
            lenient = self._leniently(data, wire.Chunk)
            if lenient is None:
                return
            chunk = lenient
        if chunk.usage is not None:
            self._take_usage(chunk.usage)
        choices = chunk.choices
        if choices:
            content = 0
            for choice in choices:
                content |= self._take_choice(choice, choice.delta)
            if self._counting:
                self._count(choices, chunk.usage, bool(content))
            if content:
                self._bearing(stamp_ns, content)
        if chunk.metrics is not None or chunk.sglext is not None or chunk.timings is not None:
            self._take_accounts(chunk)
        certain = event.event == b"error" or chunk.object == "error"
        if certain or chunk.error is not None:
            self._take_error(chunk.error, chunk.message, data, certain=certain)

    def _take_choice(self, choice: wire.Choice, message: wire.Message | None) -> int:
        """Takes in one choice; says what it carried: 0 nothing, _REASONING, _OUTPUT or both."""
        index = choice.index or 0
        self._choices.add(index)
        content = 0
        keep = self._keep_text and index == 0
        if choice.text:
            content = _OUTPUT
            if keep:
                self._keep_output(choice.text)
        if message is not None:
            reasoning = message.reasoning or message.reasoning_content
            if reasoning:
                content |= _REASONING
                if keep:
                    self._text.append(reasoning)
            for piece in (message.content, message.refusal):
                if piece:
                    text = piece if isinstance(piece, str) else _joined(piece)
                    if text:
                        content |= _OUTPUT
                        if keep:
                            self._keep_output(text)
            if message.tool_calls:
                for call in message.tool_calls:
                    content |= self._take_call(index, call)
            if message.function_call is not None:
                content |= self._take_call(index, wire.ToolCall(index=0, function=message.function_call))
        if choice.finish_reason:
            self._finish_reasons[index] = choice.finish_reason[:_FINISH_REASON_LIMIT]
            if choice.finish_reason in _BROKEN_OFF and self._error is None:
                self._error = f"the server ended the answer with finish_reason {choice.finish_reason!r}"
        if choice.usage is not None:
            self._take_usage(choice.usage)
        return content

    def _take_call(self, choice: int, call: wire.ToolCall) -> int:
        """One fragment of a tool call. Fragments share an index, or an id, or else belong to the call before."""
        function = call.function
        name = None if function is None else function.name
        arguments = None if function is None else function.arguments
        key: object = (choice, call.index)
        if call.index is None:
            key = (choice, "id", call.id)
            if call.id is None and self._call_keys:
                key = next(reversed(self._call_keys))
        kept = self._call_keys.setdefault(key, {"choice": choice, "arguments": []})
        if call.id:
            kept.setdefault("id", call.id)
        if name:
            kept.setdefault("name", name)
        if arguments and self._keep_text:
            kept["arguments"].append(arguments)
        return _OUTPUT if name or arguments else 0

    def _count(self, choices: list[wire.Choice], usage: wire.UsageBlock | None, bearing: bool) -> None:
        """Counts one event's tokens by whatever the server offers for counting."""
        ids: int | None = 0
        logprobs: int | None = 0
        for choice in choices:
            ids = None if ids is None or choice.token_ids is None else ids + len(choice.token_ids)
            entries = _logprob_count(choice.logprobs)
            logprobs = None if logprobs is None or entries is None else logprobs + entries
            usage = choice.usage or usage
        self._by_ids.add(ids, bearing)
        self._by_usage.reach(None if usage is None else usage.completion_tokens, bearing)
        self._by_logprobs.add(logprobs, bearing)
        self._counting = self._by_ids.complete or self._by_usage.complete or self._by_logprobs.complete

    def _bearing(self, stamp_ns: int, content: int) -> None:
        if content & _OUTPUT and self._first_output is None:
            self._first_output = len(self._event_ns)
        if content & _REASONING:
            self._reasoning_seen = True
        self._event_ns.append(stamp_ns)
        self._last_ns = stamp_ns

    def _keep_output(self, text: str) -> None:
        self._text.append(text)
        self._content.append(text)

    # The responses API

    def _take_response_event(self, stamp_ns: int, event: SseEvent) -> None:
        try:
            read = _decode_response_event(event.data)
        except _NOT_TYPED:
            if not self._worth_reading(event):
                return
            lenient = self._leniently(event.data, wire.ResponseEvent)
            if lenient is None:
                return
            read = lenient
        kind = read.type or event.event.decode("utf-8", "replace")
        content = 0
        if kind.endswith(".delta"):
            if read.delta:
                content = self._take_delta(kind, read)
        elif kind == "response.output_item.added":
            if read.item is not None and (read.item.type or "").endswith("_call"):
                content = self._take_item_call(read.output_index, read.item)
        elif read.response is not None:
            self._take_response(read.response, stamp_ns, final=kind in _FINAL_RESPONSE_EVENTS)
        if kind == "error" or read.error is not None:
            self._take_error(read.error, read.message, event.data, certain=kind == "error")
        if content:
            if self._counting:
                self._by_logprobs.add(len(read.logprobs) if read.logprobs else None, True)
                self._counting = self._by_logprobs.complete
            self._bearing(stamp_ns, content)

    def _take_delta(self, kind: str, read: wire.ResponseEvent) -> int:
        text = read.delta or ""
        if "reasoning" in kind:
            if self._keep_text:
                self._text.append(text)
            return _REASONING
        if "_call" in kind:
            call = self._call(read.output_index)
            if self._keep_text:
                call["arguments"].append(text)
        elif self._keep_text and kind in ("response.output_text.delta", "response.refusal.delta"):
            self._keep_output(text)
        return _OUTPUT

    def _call(self, key: object) -> dict[str, Any]:
        return self._call_keys.setdefault(key, {"choice": 0, "arguments": []})

    def _take_item_call(self, index: int | None, item: wire.Item) -> int:
        call = self._call(index)
        call["id"] = item.call_id or item.id
        if item.name:
            call["name"] = item.name
        return _OUTPUT if item.name else 0

    def _take_response(self, response: wire.Response, stamp_ns: int, *, final: bool) -> None:
        """A response as an event or a plain body holds it; `final` when it is over."""
        if response.usage is not None:
            self._take_usage(response.usage)
        if response.metrics is not None:
            self._take_vllm(response.metrics)
        if response.error or response.status == "failed":
            self._take_error(response.error, response.message, b"the response failed", certain=True)
        if not final:
            return
        self._ended = True
        output = response.output or []
        if self._last_ns is None or not self._streamed:
            self._take_output(output, stamp_ns)
        if response.status == "cancelled" and self._error is None:
            self._error = "the server cancelled the response"
        reason = None if response.incomplete_details is None else response.incomplete_details.reason
        if reason is not None:
            reason = "length" if reason == "max_output_tokens" else reason[:_FINISH_REASON_LIMIT]
        elif response.status == "incomplete":
            reason = "incomplete"
        elif self._error is None:
            reason = "tool_calls" if self._call_keys else "stop"
        if reason is not None:
            self._finish_reasons[0] = reason

    def _take_output(self, output: list[wire.Item], stamp_ns: int) -> None:
        """Content that comes with the whole response only, so that it has one arrival and no event."""
        content = 0
        for index, item in enumerate(output):
            text = _joined([*(item.content or []), *(item.summary or [])])
            if item.type == "reasoning":
                content |= _REASONING if text else 0
                if text and self._keep_text:
                    self._text.append(text)
                continue
            if text:
                content |= _OUTPUT
                if self._keep_text:
                    self._keep_output(text)
            if (item.type or "").endswith("_call"):
                content |= self._take_item_call(index, item)
                self._call(index)["arguments"].append(item.arguments or item.input or "")
        self._arrived_whole(content, stamp_ns)

    # One object

    def _take_whole(self, body: bytes) -> None:
        """A plain body. It has its last byte's arrival and no events; a body without content has neither."""
        stamp_ns, self._last_ns = self._last_ns or 0, None
        if self._endpoint is Endpoint.RESPONSES:
            self._take_whole_response(body, stamp_ns)
            return
        try:
            chunk = _decode_chunk(body)
        except _NOT_TYPED:
            lenient = self._leniently(body, wire.Chunk)
            if lenient is None:
                return
            chunk = lenient
        content = 0
        for choice in chunk.choices or ():
            content |= self._take_choice(choice, choice.message)
        self._arrived_whole(content, stamp_ns)
        if chunk.usage is not None:
            self._take_usage(chunk.usage)
        self._take_accounts(chunk)
        self._ended = chunk.choices is not None
        self._take_plain_error(chunk, body, answered=self._ended)

    def _take_whole_response(self, body: bytes, stamp_ns: int) -> None:
        try:
            response = msgspec.json.decode(body, type=wire.Response)
        except _NOT_TYPED:
            lenient = self._leniently(body, wire.Response)
            if lenient is None:
                return
            response = lenient
        running = response.status in ("queued", "in_progress")
        answered = response.output is not None or response.status is not None
        self._take_response(response, stamp_ns, final=answered and not running)
        self._take_plain_error(response, body, answered=answered)

    def _take_plain_error(self, whole: wire.Chunk | wire.Response, body: bytes, *, answered: bool) -> None:
        """An error in any of the forms that a plain body has: `error`, `object: error`, `message` or `detail` alone."""
        certain = whole.object == "error" or (not answered and (whole.message or whole.detail) is not None)
        if whole.error or certain:
            self._take_error(whole.error or whole.detail, whole.message, body, certain=certain)
        elif not answered:
            self._fail("expected a JSON object with an answer", body)

    def _arrived_whole(self, content: int, stamp_ns: int) -> None:
        if content:
            self._last_ns = stamp_ns
            self._reasoning_seen = bool(content & _REASONING)

    # What both have

    def _worth_reading(self, event: SseEvent) -> bool:
        """Whether data that is not a documented object deserves a second attempt: not when it is empty, and not when a
        foreign event (a heartbeat) holds it."""
        if event.event == b"error":
            self._take_error(None, None, event.data, certain=True)
            return False
        return bool(event.data.strip()) and (event.event in (b"", b"message") or event.event.startswith(b"response."))

    def _take_error(self, error: object, message: str | None, data: bytes, *, certain: bool) -> None:
        """Keeps the first error's text: its message, else the JSON that holds it. An empty `error` is none."""
        if self._error is not None or not (error or certain):
            return
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            message = error["message"]
        elif isinstance(error, str):
            message = error
        elif error:
            message = json.dumps(error, ensure_ascii=False)
        self._error = message or data[:BODY_START_BYTES].decode("utf-8", "replace").strip() or "an error without a text"

    def _take_usage(self, block: wire.UsageBlock) -> None:
        """The last value of each field wins; a missing one leaves what was there."""
        completion, output = block.completion_tokens, block.output_tokens
        if completion is not None or output is not None:
            self._output_tokens = output if completion is None else completion
        prompt, input_tokens = block.prompt_tokens, block.input_tokens
        if prompt is not None or input_tokens is not None:
            self._input_tokens = input_tokens if prompt is None else prompt
        details = block.prompt_tokens_details or block.input_tokens_details
        cached = None if details is None else details.cached_tokens
        if cached is None:
            cached = block.prompt_cache_hit_tokens
        if cached is not None:
            self._cached_tokens = cached
        details = block.completion_tokens_details or block.output_tokens_details
        reasoning = None if details is None else details.reasoning_tokens
        if reasoning is None:
            reasoning = block.reasoning_tokens
        if reasoning is not None:
            self._reasoning_tokens = reasoning

    def _take_accounts(self, chunk: wire.Chunk) -> None:
        """An engine's own account of the request beside the answer."""
        if chunk.metrics is not None:
            self._take_vllm(chunk.metrics)
        if chunk.sglext is not None and (told := chunk.sglext.spec_tokens_details) is not None:
            self._take_speculation(
                RequestSpeculation(
                    steps=told.spec_verify_ct,
                    drafted_tokens=told.spec_num_proposed_drafts,
                    accepted_tokens=told.spec_num_correct_drafts,
                    histogram=tuple(told.spec_correct_drafts_histogram or ()) or None,
                )
            )
        timings = chunk.timings
        if timings is not None:
            if timings.draft_n is not None:
                self._take_speculation(
                    RequestSpeculation(drafted_tokens=timings.draft_n, accepted_tokens=timings.draft_n_accepted)
                )
            if self._output_tokens is None:
                self._output_tokens = timings.predicted_n
            if self._input_tokens is None and timings.prompt_n is not None:
                self._input_tokens = timings.prompt_n + (timings.cache_n or 0)
                self._cached_tokens = timings.cache_n

    def _take_vllm(self, metrics: wire.VllmMetrics) -> None:
        told = metrics.speculative_decoding
        if told is not None:
            self._take_speculation(
                RequestSpeculation(
                    steps=told.num_spec_steps,
                    drafted_tokens=told.num_draft_tokens,
                    accepted_tokens=told.num_accepted_draft_tokens,
                    histogram=_tuple(told.acceptance_histogram),
                    max_draft_tokens=told.num_spec_tokens,
                    per_step_accepted=_tuple(told.per_step_accepted),
                    per_step_drafted=_tuple(told.per_step_drafted),
                )
            )

    def _take_speculation(self, told: RequestSpeculation) -> None:
        self._speculation = told
        histogram = told.histogram
        if histogram is not None:
            accepted = sum(length * steps for length, steps in enumerate(histogram))
            if told.steps not in (None, sum(histogram)) or told.accepted_tokens not in (None, accepted):
                self._notes.add(Note.SPECULATION_INCONSISTENT)

    # The end

    def _checked_usage(self) -> Usage:
        """The server's counts, without a zero that cannot be true."""
        given, output = self._input_tokens, self._output_tokens
        if given == 0:
            given = None
            self._notes.add(Note.USAGE_IMPLAUSIBLE)
        if output is None:
            if self._last_ns is not None:
                self._notes.add(Note.USAGE_MISSING)
        elif output < max(len(self._event_ns), self._last_ns is not None):
            output = output or None
            self._notes.add(Note.USAGE_IMPLAUSIBLE)
        if self._reasoning_tokens and not self._reasoning_seen:
            self._notes.add(Note.HIDDEN_REASONING)
        return Usage(
            input_tokens=given,
            cached_input_tokens=self._cached_tokens,
            output_tokens=output,
            reasoning_tokens=self._reasoning_tokens,
        )

    def _token_counts(self, total: int | None) -> tuple[tuple[int, ...] | None, int | None]:
        """Tokens of each event and of the stream, by the first way of counting that has every event."""
        for tally in (self._by_ids, self._by_usage, self._by_logprobs):
            running = tally is self._by_usage
            if not tally.complete or not tally.marks or (running and len(self._choices) > 1):
                continue
            if not running and total is not None and total != tally.total:
                self._notes.add(Note.COUNTS_DISAGREE)
            if tally.total > tally.marks[-1]:
                self._notes.add(Note.TRAILING_TOKENS)
            tokens = tuple(now - before for before, now in zip([0, *tally.marks], tally.marks, strict=False))
            return tokens, tally.total
        return None, None

    def _assistant_message(self) -> dict[str, object] | None:
        calls = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {"name": call.get("name"), "arguments": "".join(call["arguments"])},
            }
            for call in self._call_keys.values()
            if call["choice"] == 0
        ]
        content = "".join(self._content)
        if not self._keep_text or not (content or calls):
            return None
        message: dict[str, object] = {"role": "assistant", "content": content}
        return message | {"tool_calls": calls} if calls else message


def _tuple(values: list[int] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(values)


def _joined(parts: list[wire.Part]) -> str:
    return "".join(part.text or part.refusal or "" for part in parts)


def _logprob_count(logprobs: wire.Logprobs | None) -> int | None:
    """Tokens that the entries stand for; None without entries, since a server may send an empty list unasked."""
    if logprobs is None:
        return None
    return len(logprobs.content or ()) + len(logprobs.refusal or ()) or len(logprobs.tokens or ()) or None
