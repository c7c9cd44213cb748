"""What the known-truth server does with one request: a schedule, a shape of stream, and perhaps a failure.

Pure: a script and a request give the writes of a response with their offsets; nothing here knows a clock or a socket.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import cycle
from typing import Any

import msgspec

from loadgen.core.errors import ConfigError


class Fault(StrEnum):
    """How a response goes wrong. `after_events` content events come first where there is a stream at all."""

    ERROR_EVENT = "error_event"
    """An error object in the stream, then `[DONE]`: the status stays 200."""
    TRUNCATED = "truncated"
    """The connection closes in the middle of the body."""
    NO_FINISH = "no_finish"
    """The body ends as HTTP wants it, but without a finish reason and without `[DONE]`."""
    RESET = "reset"
    """The connection is reset (RST)."""
    STALL = "stall"
    """Silence with the socket open, until the client leaves."""
    EMPTY = "empty"
    """A whole stream without one token."""
    WRONG_TYPE = "wrong_type"
    """Status 200 and a page of HTML."""
    NOT_STREAMED = "not_streamed"
    """One JSON body, though a stream was asked for."""


class UsageLayout(StrEnum):
    """Where the stream carries its token counts."""

    ASKED = "asked"
    """As the request's `stream_options` say."""
    NONE = "none"
    FINAL = "final"
    """A chunk of its own, with empty choices, after the last token."""
    WITH_LAST = "with_last"
    """In the chunk of the last token."""
    CONTINUOUS = "continuous"
    """Counts so far in every chunk, and the final chunk."""


class LineEnd(StrEnum):
    """What ends a line of the event stream."""

    LF = "lf"
    CRLF = "crlf"
    CR = "cr"


_LINE_ENDS = {LineEnd.LF: b"\n", LineEnd.CRLF: b"\r\n", LineEnd.CR: b"\r"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One request's fate. Milliseconds count from the instant at which the whole request was read.

    Content event i is due at `ttft_ms + i * gap_ms` and carries `tokens_per_event[i]` tokens (the list repeats).
    `tokens` wins over the request's own limit; without either there are 64. `role_ms` sends a chunk with the role
    alone, `keep_alive_ms` a comment that often until the last event. `coalesce` events share one write, at the time of
    the last of them; each write leaves in `split` pieces `split_ms` apart, the last one on time. The first
    `reasoning_events` are reasoning. `headers_ms` delays the response head; `status` other than 200 is an error
    response then, with `retry_after_s` in its head.
    """

    ttft_ms: float = 50.0
    gap_ms: float = 20.0
    tokens: int | None = None
    tokens_per_event: tuple[int, ...] = (1,)
    text: str = " tok"
    headers_ms: float = 0.0
    role_ms: float | None = None
    keep_alive_ms: float | None = None
    reasoning_events: int = 0
    coalesce: int = 1
    split: int = 1
    split_ms: float = 1.0
    usage: UsageLayout = UsageLayout.ASKED
    line_end: LineEnd = LineEnd.LF
    done_marker: bool = True
    status: int = 200
    retry_after_s: float | None = None
    fault: Fault | None = None
    after_events: int = 3

    def __post_init__(self) -> None:
        at_least = {"ttft_ms": 0, "gap_ms": 0, "headers_ms": 0, "split_ms": 0, "after_events": 0, "reasoning_events": 0}
        for name, least in (at_least | {"coalesce": 1, "split": 1, "status": 200}).items():
            if getattr(self, name) < least:
                raise ConfigError(f"script: {name}: expected {least} or more, got {getattr(self, name)!r}")
        if not self.tokens_per_event or min(self.tokens_per_event) < 1:
            raise ConfigError(f"script: tokens_per_event: expected counts of 1 or more, got {self.tokens_per_event!r}")
        if self.tokens is not None and self.tokens < 1:
            raise ConfigError(f"script: tokens: expected 1 or more, got {self.tokens!r}")
        if self.keep_alive_ms is not None and self.keep_alive_ms <= 0:
            raise ConfigError(f"script: keep_alive_ms: expected more than 0, got {self.keep_alive_ms!r}")

    def changed_by(self, changes: dict[str, Any]) -> "Script":
        """This script with some fields replaced, as JSON gives them. Raises ConfigError naming a wrong field."""
        known = {field.name for field in fields(self)}
        for name in changes:
            if name not in known:
                raise ConfigError(f"script: unknown field {name!r}; expected one of {', '.join(sorted(known))}")
        try:
            return msgspec.convert({field.name: getattr(self, field.name) for field in fields(self)} | changes, Script)
        except msgspec.ValidationError as fault:
            raise ConfigError(f"script: {fault}") from fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The parts of a request that a response depends on."""

    chat: bool
    stream: bool
    max_tokens: int | None
    include_usage: bool
    continuous_usage: bool
    token_ids: bool
    input_tokens: int
    model: str
    request_id: str


@dataclass(frozen=True, slots=True)
class Write:
    """One write: `offset_ns` after the request was read. `events` content events and their `tokens` end in it."""

    offset_ns: int
    data: bytes
    events: int = 0
    tokens: int = 0


def read_request(body: bytes, *, chat: bool, model: str, request_id: str, script: Script) -> tuple[Asked, Script]:
    """What a request body asks for, and the script with the changes that its own `truth` object makes.

    Raises ConfigError for a body that is no JSON object or that asks for a script that there is not.
    """
    try:
        asked = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise ConfigError(f"request body: expected a JSON object: {fault}") from fault
    options = asked.get("stream_options") or {}
    changes = asked.get("truth") or {}
    if not isinstance(changes, dict) or not isinstance(options, dict):
        raise ConfigError("request body: expected objects in 'truth' and 'stream_options'")
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ConfigError(f"request body: max_tokens: expected a whole number of 1 or more, got {limit!r}")
    return (
        Asked(
            chat=chat,
            stream=asked.get("stream") is True,
            max_tokens=limit,
            include_usage=options.get("include_usage") is True,
            continuous_usage=options.get("continuous_usage_stats") is True,
            token_ids=asked.get("return_token_ids") is True,
            input_tokens=_input_tokens(asked.get("messages") if chat else asked.get("prompt")),
            model=model,
            request_id=request_id,
        ),
        script.changed_by(changes),
    )


def _input_tokens(prompt: Any) -> int:
    """This server's own tokenizer: a token id is one token, and so is a word."""
    match prompt:
        case str():
            return max(1, len(prompt.split()))
        case [int(), *_]:
            return len(prompt)
        case list():
            return sum(_input_tokens(part) for part in prompt)
        case {"content": content}:
            return _input_tokens(content)
        case {"text": text}:
            return _input_tokens(text)
        case _:
            return 1


def total_tokens(script: Script, asked: Asked) -> int:
    """How many tokens a response without a fault has."""
    return script.tokens or asked.max_tokens or 64


def stream(script: Script, asked: Asked) -> Iterator[Write]:
    """The writes of a streamed response body up to its end or its fault, in order of time. Lazily made."""
    end = _LINE_ENDS[script.line_end]
    cutter = _Cutter(script)
    keep_alive_ms, last_ns = script.keep_alive_ms, 0
    role_sent = script.role_ms is None or not asked.chat
    for write in _coalesced(_content(script, asked, end), script.coalesce):
        if script.role_ms is not None and not role_sent:
            role = _event(_chat_chunk(asked, {"role": "assistant", "content": ""}, None), end)
            yield from cutter.cut(Write(min(_ns(script.role_ms), write.offset_ns), role))
            role_sent = True
        while keep_alive_ms is not None and script.keep_alive_ms and _ns(keep_alive_ms) < write.offset_ns:
            yield Write(cutter.not_before(_ns(keep_alive_ms)), b": keep-alive" + end + end)
            keep_alive_ms += script.keep_alive_ms
        yield from cutter.cut(write)
        last_ns = write.offset_ns
    for data in _closing(script, asked, end):
        yield Write(cutter.not_before(last_ns), data)


class _Cutter:
    """Cuts writes into pieces, never letting a piece overtake the one before it."""

    def __init__(self, script: Script) -> None:
        self._split, self._step_ns = script.split, _ns(script.split_ms)
        self._last_ns = 0

    def not_before(self, offset_ns: int) -> int:
        self._last_ns = max(self._last_ns, offset_ns)
        return self._last_ns

    def cut(self, write: Write) -> Iterator[Write]:
        parts = min(self._split, len(write.data))
        for i in range(parts):
            piece = write.data[len(write.data) * i // parts : len(write.data) * (i + 1) // parts]
            at = self.not_before(write.offset_ns - (parts - 1 - i) * self._step_ns)
            last = i == parts - 1
            yield Write(at, piece, write.events if last else 0, write.tokens if last else 0)


def _content(script: Script, asked: Asked, end: bytes) -> Iterator[Write]:
    """One write a content event, up to the last token or the fault."""
    if script.fault is Fault.EMPTY:
        yield Write(_ns(script.ttft_ms), _event(_finish_chunk(asked), end))
        return
    total, sent = total_tokens(script, asked), 0
    for index, wanted in enumerate(cycle(script.tokens_per_event)):
        if sent == total or (script.fault is not None and index == script.after_events):
            return
        tokens = min(wanted, total - sent)
        sent += tokens
        finish = "length" if sent == total and script.fault is None else None
        so_far = script.usage is UsageLayout.CONTINUOUS or (
            script.usage is UsageLayout.ASKED and asked.continuous_usage
        )
        with_last = script.usage is UsageLayout.WITH_LAST and finish is not None
        usage = _usage(asked, sent) if so_far or with_last else None
        ids = list(range(sent - tokens, sent)) if asked.token_ids else None
        text = script.text * tokens
        if asked.chat:
            field = "reasoning" if index < script.reasoning_events else "content"
            chunk = _chat_chunk(asked, {field: text}, finish, ids, usage)
        else:
            chunk = _text_chunk(asked, text, finish, ids, usage)
        yield Write(_ns(script.ttft_ms + index * script.gap_ms), _event(chunk, end), 1, tokens)


def _coalesced(writes: Iterator[Write], count: int) -> Iterator[Write]:
    group: list[Write] = []
    for write in writes:
        group.append(write)
        if len(group) == count:
            yield _joined(group)
            group = []
    if group:
        yield _joined(group)


def _joined(group: list[Write]) -> Write:
    if len(group) == 1:
        return group[0]
    return Write(
        group[-1].offset_ns,
        b"".join(write.data for write in group),
        sum(write.events for write in group),
        sum(write.tokens for write in group),
    )


def _closing(script: Script, asked: Asked, end: bytes) -> Iterator[bytes]:
    """What follows the last content event: usage, the end marker, or a fault's last words."""
    if script.fault is Fault.ERROR_EVENT:
        yield _event({"error": {"message": "the engine stopped", "type": "InternalServerError", "code": 500}}, end)
    elif script.fault in (None, Fault.EMPTY):
        total = 0 if script.fault is Fault.EMPTY else total_tokens(script, asked)
        wanted = script.usage in (UsageLayout.FINAL, UsageLayout.CONTINUOUS)
        if wanted or (script.usage is UsageLayout.ASKED and asked.include_usage):
            yield _event(_head(asked) | {"choices": [], "usage": _usage(asked, total)}, end)
    else:
        return
    if script.done_marker:
        yield b"data: [DONE]" + end + end


def unary(script: Script, asked: Asked) -> tuple[int, bytes]:
    """A response in one JSON body: when it is due (ns after the request was read) and the body."""
    total = total_tokens(script, asked)
    events, sent = 0, 0
    for wanted in cycle(script.tokens_per_event):
        if sent >= total:
            break
        sent, events = sent + wanted, events + 1
    text = script.text * total
    content = {"message": {"role": "assistant", "content": text}} if asked.chat else {"text": text}
    choice = {"index": 0, "finish_reason": "length"} | content
    body = _head(asked, whole=True) | {"choices": [choice], "usage": _usage(asked, total)}
    return _ns(script.ttft_ms + (events - 1) * script.gap_ms), msgspec.json.encode(body)


def _event(chunk: dict[str, Any], end: bytes) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + end + end


def _head(asked: Asked, *, whole: bool = False) -> dict[str, Any]:
    kind = ("chat.completion" if whole else "chat.completion.chunk") if asked.chat else "text_completion"
    return {"id": asked.request_id, "object": kind, "created": 1, "model": asked.model}


def _finish_chunk(asked: Asked) -> dict[str, Any]:
    return _chat_chunk(asked, {}, "stop") if asked.chat else _text_chunk(asked, "", "stop", None, None)


def _chat_chunk(
    asked: Asked,
    delta: dict[str, str],
    finish: str | None,
    ids: list[int] | None = None,
    usage: dict[str, int] | None = None,
) -> dict[str, Any]:
    return _chunk(asked, {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}, ids, usage)


def _text_chunk(
    asked: Asked, text: str, finish: str | None, ids: list[int] | None, usage: dict[str, int] | None
) -> dict[str, Any]:
    return _chunk(asked, {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}, ids, usage)


def _chunk(asked: Asked, choice: dict[str, Any], ids: list[int] | None, usage: dict[str, int] | None) -> dict[str, Any]:
    if ids is not None:
        choice["token_ids"] = ids
    chunk = _head(asked) | {"choices": [choice]}
    if usage is not None:
        chunk["usage"] = usage
    return chunk


def _usage(asked: Asked, output: int) -> dict[str, int]:
    return {
        "prompt_tokens": asked.input_tokens,
        "total_tokens": asked.input_tokens + output,
        "completion_tokens": output,
    }


def _ns(ms: float) -> int:
    return round(ms * 1e6)
