"""Pieces of an OpenAI-compatible response body, each with its arrival, to one `Answer`."""

import json
from typing import TYPE_CHECKING, Any

import msgspec

from loadgen.core.request import Endpoint
from loadgen.core.stream import wire
from loadgen.core.stream.accounts import UsageSoFar, consistent, speculation_of
from loadgen.core.stream.answer import Answer, Note, Usage
from loadgen.core.stream.sse import MAX_EVENT_BYTES, SseDecoder, SseEvent
from loadgen.core.stream.tokens import TokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadgen.core.record import RequestSpeculation

BODY_START_BYTES = 2048
"""How much of the beginning of a body is kept for the message of a failure."""
_EXCERPT_BYTES = 120
_FINISH_REASON_LIMIT = 64
_GAVE_UP = ("error", "abort")
"""Finish reasons by which a server says that it broke the answer off (vLLM and routers; SGLang)."""
_FINAL_RESPONSE_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_REASONING, _OUTPUT = 1, 2  # what an event carried, as flags

_decode_chunk = msgspec.json.Decoder(wire.Chunk).decode
_decode_response_event = msgspec.json.Decoder(wire.ResponseEvent).decode
_decode_response = msgspec.json.Decoder(wire.Response).decode
_NOT_AS_DOCUMENTED = (msgspec.DecodeError, RecursionError)


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
        # Plain functions: a bound method would be a cycle, and the decoder would live until a garbage collection.
        self._read: Callable[[AnswerDecoder, int, bytes], None] = AnswerDecoder._read_first
        self._take = AnswerDecoder._take_chunk
        if endpoint is Endpoint.RESPONSES:
            self._take = AnswerDecoder._take_response_event
        self._sse = SseDecoder(max_event_bytes)
        self._streamed = True
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._body_start = b""
        self._done = False  # [DONE] came
        self._ended = False  # the endpoint's final event, or the whole object, came
        self._malformed: str | None = None
        self._error: str | None = None
        self._notes: set[Note] = set()
        self._event_ns: list[int] = []
        self._first_output: int | None = None
        self._last_ns: int | None = None
        self._reasoning_seen = False
        self._tokens = TokenCounter()
        self._usage = UsageSoFar()
        self._speculation: RequestSpeculation | None = None
        self._choices: set[int] = set()
        self._finish_reasons: dict[int, str] = {}
        self._calls: dict[object, _Call] = {}
        self._text: list[str] = []
        self._output: list[str] = []

    @property
    def events(self) -> int:
        """Token-bearing events so far."""
        return len(self._event_ns)

    def feed(self, stamp_ns: int, data: bytes) -> None:
        """Takes the next piece of the body, which arrived at `stamp_ns`."""
        if len(self._body_start) < BODY_START_BYTES:
            self._body_start += data[: BODY_START_BYTES - len(self._body_start)]
        self._read(self, stamp_ns, data)

    def finish(self) -> Answer:
        """The answer, once the body has ended."""
        if not self._streamed and self._malformed is None:
            self._take_whole(b"".join(self._body))
        elif self._sse.remainder.strip() and not self._done:
            self._notes.add(Note.UNTERMINATED_EVENT)
        finished = bool(self._finish_reasons) and self._finish_reasons.keys() >= self._choices
        terminal = self._done or self._ended or finished
        usage = self._checked_usage()
        tally = self._tokens.best(several_choices=len(self._choices) > 1)
        if tally is not None:
            if tally is not self._tokens.by_usage and usage.output_tokens not in (None, tally.total):
                self._notes.add(Note.COUNTS_DISAGREE)
            if tally.total > tally.marks[-1]:
                self._notes.add(Note.TRAILING_TOKENS)
        if terminal and self._error is None:
            if self._streamed and not self._done and self._endpoint is not Endpoint.RESPONSES:
                self._notes.add(Note.NO_DONE)
            if not self._finish_reasons:
                self._notes.add(Note.NO_FINISH_REASON)
        if len(self._choices) > 1:
            self._notes.add(Note.SEVERAL_CHOICES)
        if self._speculation is not None and not consistent(self._speculation):
            self._notes.add(Note.SPECULATION_INCONSISTENT)
        whole = terminal and self._error is None and self._malformed is None
        return Answer(
            event_ns=tuple(self._event_ns),
            event_tokens=None if tally is None else tally.event_tokens,
            stream_tokens=None if tally is None else tally.total,
            first_output=self._first_output,
            last_ns=self._last_ns,
            usage=usage,
            finish_reason=self._finish_reasons[min(self._finish_reasons)] if self._finish_reasons else None,
            tool_calls=len(self._calls) or None,
            text="".join(self._text) if self._keep_text else None,
            assistant_message=self._assistant_message() if self._keep_text else None,
            speculation=self._speculation,
            terminal=terminal,
            error=self._error,
            malformed=self._malformed,
            body_start=None if whole else self._body_start.decode("utf-8", "replace"),
            streamed=self._streamed,
            notes=tuple(note for note in Note if note in self._notes),
        )

    # How the body is read

    def _read_first(self, stamp_ns: int, data: bytes) -> None:
        """Chooses how the rest is read; without a content type that waits for the first character that tells."""
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
            self._read = AnswerDecoder._read_stream
        elif kind == "application/json" or kind.endswith("+json"):
            self._streamed = False
            self._read = AnswerDecoder._read_whole
        else:
            self._read = AnswerDecoder._read_nothing
            self._fail(f"expected text/event-stream or application/json, got {kind}")
        self._read(self, stamp_ns, data)

    def _read_stream(self, stamp_ns: int, data: bytes) -> None:
        for event in self._sse.feed(data):
            if event.data == b"[DONE]":
                self._done = True
                self._read = AnswerDecoder._read_nothing
                return
            self._take(self, stamp_ns, event)
        if self._sse.overflowed:
            self._read = AnswerDecoder._read_nothing
            self._fail(f"an event is longer than the limit of {self._max_event_bytes} bytes")

    def _read_whole(self, stamp_ns: int, data: bytes) -> None:
        if data:
            self._last_ns = stamp_ns
        self._body.append(data)
        self._body_bytes += len(data)
        if self._body_bytes > self._max_event_bytes:
            self._body.clear()
            self._last_ns = None
            self._read = AnswerDecoder._read_nothing
            self._fail(f"the body is longer than the limit of {self._max_event_bytes} bytes")

    def _read_nothing(self, stamp_ns: int, data: bytes) -> None:
        """The rest of the body has no say."""

    def _fail(self, reason: str, data: bytes = b"") -> None:
        if self._malformed is None:
            begin = data[:_EXCERPT_BYTES].decode("utf-8", "replace")
            self._malformed = f"{reason}: {begin}" if begin else reason

    def _leniently(self, data: bytes, shape: type[wire.Shape]) -> wire.Shape:
        """What can be had of data that is not as documented; an empty shape when it is no object at all."""
        try:
            value, repaired = wire.read_leniently(data, shape)
        except wire.UnreadableError as fault:
            self._fail(str(fault), data)
            return shape()
        self._notes.add(Note.REPAIRED_TEXT if repaired else Note.ODD_FIELDS)
        return value

    def _is_foreign(self, event: SseEvent) -> bool:
        """Whether undocumented data is none of our business: it is empty, or a foreign event (a heartbeat) holds it."""
        ours = event.event in (b"", b"message", b"error") or event.event.startswith(b"response.")
        return not ours or not event.data.strip()

    # Chat and completions

    def _take_chunk(self, stamp_ns: int, event: SseEvent) -> None:
        try:
            chunk = _decode_chunk(event.data)
        except _NOT_AS_DOCUMENTED:
            if self._is_foreign(event):
                return
            if event.event == b"error":
                chunk = wire.Chunk(message=_excerpt(event.data))
            else:
                chunk = self._leniently(event.data, wire.Chunk)
        usage = chunk.usage
        if usage is not None:
            self._usage.take(usage)
        choices = chunk.choices
        if choices:
            content = 0
            for choice in choices:
                content |= self._take_choice(choice, choice.delta)
            if self._tokens.counting:
                self._tokens.count(choices, usage, bool(content))
            if content:
                self._mark(stamp_ns, content)
        if chunk.metrics is not None or chunk.sglext is not None or chunk.timings is not None:
            self._take_accounts(chunk)
        if chunk.prompt_token_ids is not None:
            self._usage.prompt_ids = len(chunk.prompt_token_ids)
        certain = event.event == b"error" or chunk.object == "error"
        if certain or chunk.error is not None:
            self._take_error(chunk, event.data, certain=certain)

    def _take_choice(self, choice: wire.Choice, message: wire.Message | None) -> int:
        """One choice of a chunk or a whole answer; says what it carried: 0 for nothing, else flags."""
        index = choice.index or 0
        self._choices.add(index)
        keep = self._keep_text and index == 0
        content = 0
        if choice.text:
            content = _OUTPUT
            if keep:
                self._keep_output(choice.text)
        if message is not None:
            if message.reasoning or message.reasoning_content:
                content = _REASONING
                if keep:
                    self._text.append(message.reasoning or message.reasoning_content or "")
            if message.content:
                text = message.content if isinstance(message.content, str) else _joined(message.content)
                if text:
                    content |= _OUTPUT
                    if keep:
                        self._keep_output(text)
            if message.refusal:
                content |= _OUTPUT
                if keep:
                    self._keep_output(message.refusal)
            for call in message.tool_calls or ():
                content |= self._take_call(index, call)
            if message.function_call is not None:
                content |= self._take_call(index, wire.ToolCall(index=0, function=message.function_call))
        if choice.finish_reason:
            self._finish_reasons[index] = choice.finish_reason[:_FINISH_REASON_LIMIT]
            if choice.finish_reason in _GAVE_UP and self._error is None:
                self._error = f"the server ended the answer with finish_reason {choice.finish_reason!r}"
        if choice.usage is not None:
            self._usage.take(choice.usage)
        if choice.prompt_token_ids is not None:
            self._usage.prompt_ids = len(choice.prompt_token_ids)
        return content

    def _take_call(self, choice: int, fragment: wire.ToolCall) -> int:
        """A fragment of a tool call. Fragments of one call share its index; without one a new id is a new call."""
        if fragment.index is not None:
            key: object = (choice, fragment.index)
        elif fragment.id is not None or not self._calls:
            key = (choice, fragment.id)
        else:
            key = next(reversed(self._calls))
        call = self._calls.setdefault(key, _Call(choice))
        function = fragment.function or wire.Function()
        call.id = call.id or fragment.id
        call.name = call.name or function.name
        arguments = function.arguments
        if arguments and self._keep_text:
            call.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
        return _OUTPUT if function.name or arguments else 0

    # The responses API

    def _take_response_event(self, stamp_ns: int, event: SseEvent) -> None:
        try:
            read = _decode_response_event(event.data)
        except _NOT_AS_DOCUMENTED:
            if self._is_foreign(event):
                return
            if event.event == b"error":
                read = wire.ResponseEvent(type="error", message=_excerpt(event.data))
            else:
                read = self._leniently(event.data, wire.ResponseEvent)
        kind = read.type or event.event.decode("utf-8", "replace")
        content = 0
        if kind.endswith(".delta"):
            content = self._take_delta(kind, read) if read.delta else 0
        elif kind == "response.output_item.added" and read.item is not None:
            content = self._take_call_item(read.output_index, read.item)
        elif read.response is not None:
            self._take_response(read.response, stamp_ns, final=kind in _FINAL_RESPONSE_EVENTS)
        if content:
            if self._tokens.counting:
                self._tokens.count_logprobs(read.logprobs)
            self._mark(stamp_ns, content)
        if kind == "error" or read.error is not None:
            self._take_error(read, event.data, certain=kind == "error")

    def _take_delta(self, kind: str, read: wire.ResponseEvent) -> int:
        text = read.delta or ""
        if "reasoning" in kind:
            if self._keep_text:
                self._text.append(text)
            return _REASONING
        if "_call" in kind:  # the arguments of a function, custom tool or MCP call, or an interpreter's code
            call = self._calls.setdefault(read.output_index, _Call())
            if self._keep_text:
                call.arguments.append(text)
        elif self._keep_text and kind in ("response.output_text.delta", "response.refusal.delta"):
            self._keep_output(text)
        return _OUTPUT

    def _take_call_item(self, index: int | None, item: wire.Item) -> int:
        if not (item.type or "").endswith("_call"):
            return 0
        call = self._calls.setdefault(index, _Call())
        call.id, call.name = item.call_id or item.id, item.name
        return _OUTPUT if item.name else 0

    def _take_response(self, response: wire.Response, stamp_ns: int, *, final: bool) -> None:
        """The response as an event or a plain body holds it; `final` when it is over."""
        if response.usage is not None:
            self._usage.take(response.usage)
        self._take_accounts(response)
        if response.error or response.status == "failed":
            self._take_error(response, b"the response failed", certain=True)
        if not final:
            return
        self._ended = True
        if self._last_ns is None:
            self._take_output(response.output or [], stamp_ns)
        if response.status == "cancelled" and self._error is None:
            self._error = "the server cancelled the response"
        reason = None if response.incomplete_details is None else response.incomplete_details.reason
        if reason is None and response.status == "incomplete":
            reason = "incomplete"
        elif reason == "max_output_tokens":
            reason = "length"
        elif reason is None and self._error is None:
            reason = "tool_calls" if self._calls else "stop"
        if reason is not None:
            self._finish_reasons[0] = reason[:_FINISH_REASON_LIMIT]

    def _take_output(self, items: list[wire.Item], stamp_ns: int) -> None:
        """Content that comes with the whole response only, so that it has an arrival and no event."""
        content = 0
        for index, item in enumerate(items):
            text = _joined([*(item.summary or ()), *(item.content or ())])
            if item.type == "reasoning":
                content |= _REASONING if text else 0
                self._text.append(text)
            else:
                content |= self._take_call_item(index, item) | (_OUTPUT if text else 0)
                self._keep_output(text)
            if index in self._calls:
                self._calls[index].arguments.append(item.arguments or item.input or "")
        self._came_whole(stamp_ns, content)

    # One object

    def _take_whole(self, body: bytes) -> None:
        """A plain body. Its content has the arrival of the last byte and no events."""
        stamp_ns, self._last_ns = self._last_ns or 0, None
        responses = self._endpoint is Endpoint.RESPONSES
        whole: wire.Chunk | wire.Response
        try:
            whole = _decode_response(body) if responses else _decode_chunk(body)
        except _NOT_AS_DOCUMENTED:
            whole = self._leniently(body, wire.Response) if responses else self._leniently(body, wire.Chunk)
        if isinstance(whole, wire.Response):
            answered = whole.status is not None or whole.output is not None
            self._take_response(whole, stamp_ns, final=answered and whole.status not in ("queued", "in_progress"))
        else:
            answered = self._ended = whole.choices is not None
            content = 0
            for choice in whole.choices or ():
                content |= self._take_choice(choice, choice.message)
            self._came_whole(stamp_ns, content)
            if whole.usage is not None:
                self._usage.take(whole.usage)
            if whole.prompt_token_ids is not None:
                self._usage.prompt_ids = len(whole.prompt_token_ids)
            self._take_accounts(whole)
        bare = not answered and bool(whole.message or whole.detail)
        if whole.error or whole.object == "error" or bare:
            self._take_error(whole, body, certain=True)
        elif not answered:
            self._fail("expected a JSON object with an answer or an error", body)

    # What all of them share

    def _mark(self, stamp_ns: int, content: int) -> None:
        """Notes a token-bearing event."""
        if content & _OUTPUT and self._first_output is None:
            self._first_output = len(self._event_ns)
        if content & _REASONING:
            self._reasoning_seen = True
        self._event_ns.append(stamp_ns)
        self._last_ns = stamp_ns

    def _came_whole(self, stamp_ns: int, content: int) -> None:
        if content:
            self._last_ns = stamp_ns
        if content & _REASONING:
            self._reasoning_seen = True

    def _keep_output(self, text: str) -> None:
        self._text.append(text)
        self._output.append(text)

    def _take_accounts(self, whole: wire.Chunk | wire.Response) -> None:
        told = speculation_of(whole)
        if told is not None:
            self._speculation = told
        if isinstance(whole, wire.Chunk) and whole.timings is not None:
            self._usage.timings = whole.timings

    def _take_error(
        self, whole: wire.Chunk | wire.Response | wire.ResponseEvent, data: bytes, *, certain: bool
    ) -> None:
        """Keeps the first error's text: its message, else the JSON that holds it. An empty `error` alone is none."""
        error: Any = whole.error or (None if isinstance(whole, wire.ResponseEvent) else whole.detail)
        if self._error is not None or not (error or certain):
            return
        text = whole.message
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            text = error["message"]
        elif isinstance(error, str):
            text = error or text
        elif error:
            text = json.dumps(error, ensure_ascii=False)
        self._error = text or _excerpt(data) or "an error without a text"

    def _checked_usage(self) -> Usage:
        """The server's counts, without a zero that cannot be true."""
        self._usage.fall_back()
        given, output, reasoning = self._usage.input_tokens, self._usage.output_tokens, self._usage.reasoning_tokens
        if given == 0 or (output is not None and output < max(len(self._event_ns), self._last_ns is not None)):
            self._notes.add(Note.USAGE_IMPLAUSIBLE)
        if output is None and self._last_ns is not None:
            self._notes.add(Note.USAGE_MISSING)
        if reasoning and not self._reasoning_seen:
            self._notes.add(Note.HIDDEN_REASONING)
        return Usage(
            input_tokens=given or None,
            cached_input_tokens=self._usage.cached_input_tokens,
            output_tokens=None if output == 0 and self._last_ns is not None else output,
            reasoning_tokens=reasoning,
        )

    def _assistant_message(self) -> dict[str, object] | None:
        """The first choice as a message of the next turn's history; None when it has nothing to say."""
        message: dict[str, object] = {"role": "assistant", "content": "".join(self._output)}
        calls = [call.as_json() for call in self._calls.values() if call.choice == 0]
        if calls:
            message["tool_calls"] = calls
        return message if calls or self._output else None


class _Call:
    """A tool call as its fragments have built it so far."""

    __slots__ = ("arguments", "choice", "id", "name")

    def __init__(self, choice: int = 0) -> None:
        self.choice = choice
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []

    def as_json(self) -> dict[str, object]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id, "type": "function", "function": function}


def _joined(parts: list[wire.Part]) -> str:
    return "".join(part.text or part.refusal or "" for part in parts)


def _excerpt(data: bytes) -> str:
    return data[:BODY_START_BYTES].decode("utf-8", "replace").strip()
