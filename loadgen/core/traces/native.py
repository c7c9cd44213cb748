"""Loadgen's own form, read and written: JSON lines, one request each.

What is asked is one of `prompt`, `messages`, `token_ids`, `body` (a whole request body), `turns` (texts of the user,
each sent after the answer to the one before), or lengths alone (`input_tokens`, with `hash_ids` and `block_tokens` for
shared prefixes). Prompt sets such as MT-Bench (`question_id`, `turns`) and HumanEval (`task_id`, `prompt`) are rows of
this form too. docs/traces.md is the reference.
"""

from typing import Annotated, Any

import msgspec

from loadgen.core.request import LIMITS, Body, JsonObject, Messages, Prompt, Text, TokenIds
from loadgen.core.traces.json_rows import Count, check_blocks, decode_row, time_ns
from loadgen.core.traces.row import LARGEST_COUNT, BadRow, Reason, Row, RowTurn
from loadgen.core.units import NS_PER_S

_Positive = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_COUNT)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_ASKED = ("body", "prompt", "messages", "token_ids", "turns")


class _Line(msgspec.Struct):
    timestamp: int | float | None = None
    body: dict[str, Any] | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    token_ids: tuple[Count, ...] | None = None
    turns: list[str] | None = None
    id: str | int | None = None
    question_id: str | int | None = None
    task_id: str | int | None = None
    category: str | None = None
    session_id: str | int | None = None
    turn: Count | None = None
    system: str | None = None
    max_tokens: _Positive | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    think_s: _Seconds | None = None
    continues_answers: bool | None = None
    answer: str | None = None
    hash_ids: tuple[int, ...] | None = None
    block_tokens: _Positive | None = None


KNOWN_KEYS = frozenset(_Line.__struct_fields__)


class NativeParser:
    """Rows of one file."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(_Line)

    def parse(self, data: bytes) -> Row | Reason:
        """One request, or one conversation for `turns`; zero tokens are left out."""
        line = decode_row(self._decoder, data)
        asked = [name for name in _ASKED if getattr(line, name) is not None]
        if len(asked) > 1:
            raise BadRow(Reason.BAD_VALUE, f"expected one of {', '.join(_ASKED)}, found {' and '.join(asked)}")
        if line.input_tokens == 0 or line.output_tokens == 0:
            return Reason.ZERO_TOKENS
        names = (line.id, line.question_id, line.task_id)
        return Row(
            turns=_turns(line, asked[0] if asked else None),
            time_ns=time_ns(line.timestamp, per_second=1),
            session=None if line.session_id is None else str(line.session_id),
            turn=line.turn,
            category=line.category,
            id=next((str(name) for name in names if name is not None), None),
        )


def _turns(line: _Line, asked: str | None) -> tuple[RowTurn, ...]:
    if line.system is not None and asked not in ("prompt", "messages", "turns"):
        raise BadRow(Reason.BAD_VALUE, "expected it beside prompt, messages or turns only", field="system")
    system: tuple[JsonObject, ...] = () if line.system is None else ({"role": "system", "content": line.system},)
    output_tokens = line.output_tokens if line.max_tokens is None else line.max_tokens
    if line.turns is not None:
        if not line.turns:
            raise BadRow(Reason.BAD_VALUE, "expected at least one text", field="turns")
        return tuple(
            RowTurn(
                prompt=Messages(messages=(*(system if place == 0 else ()), _user(text))),
                output_tokens=output_tokens,
                think_s=line.think_s if place else None,
                continues_answers=place > 0,
            )
            for place, text in enumerate(line.turns)
        )
    prompt: Prompt | None = None
    input_tokens = line.input_tokens
    if line.body is not None:
        own = _body_tokens(line.body)
        output_tokens = output_tokens if own is None else own
        prompt = _body(line.body)
    elif line.prompt is not None:
        plain = line.session_id is None and not system
        prompt = Text(text=line.prompt) if plain else Messages(messages=(*system, _user(line.prompt)))
    elif line.messages is not None:
        _check_messages(line.messages)
        prompt = Messages(messages=(*system, *line.messages))
    elif line.token_ids is not None:
        if not line.token_ids:
            raise BadRow(Reason.BAD_VALUE, "expected at least one token", field="token_ids")
        prompt = TokenIds(ids=line.token_ids)
        input_tokens = len(line.token_ids)
    elif input_tokens is None:
        raise BadRow(Reason.MISSING_FIELD, f"expected one of {', '.join(_ASKED)} or input_tokens")
    if line.hash_ids is not None:
        if line.block_tokens is None or input_tokens is None or prompt is not None:
            raise BadRow(
                Reason.BLOCKS, "expected block_tokens and input_tokens beside it, and no text", field="hash_ids"
            )
        check_blocks(line.hash_ids, line.block_tokens, input_tokens)
    continues = line.continues_answers
    if continues is None:
        # A bare text in a session cannot hold the turns before it, so it goes on from them.
        continues = line.session_id is not None and line.prompt is not None
    return (
        RowTurn(
            prompt=prompt,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            blocks=line.hash_ids or (),
            block_tokens=line.block_tokens if line.hash_ids else None,
            answer=line.answer,
            think_s=line.think_s,
            continues_answers=continues,
        ),
    )


def _user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def _check_messages(messages: list[dict[str, Any]]) -> None:
    if not messages:
        raise BadRow(Reason.BAD_VALUE, "expected at least one message", field="messages")
    for place, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise BadRow(Reason.BAD_VALUE, "expected a text", field=f"messages[{place}].role")
        content = message.get("content")
        if content is None and message.get("tool_calls"):
            continue
        if not isinstance(content, str | list):
            raise BadRow(Reason.BAD_VALUE, "expected a text or a list of parts", field=f"messages[{place}].content")


def _body(body: dict[str, Any]) -> Body:
    if not any(body.get(key) is not None for key in ("messages", "prompt", "input")):
        raise BadRow(Reason.MISSING_FIELD, "expected messages, prompt or input in it", field="body")
    if isinstance(body.get("messages"), list) and all(isinstance(message, dict) for message in body["messages"]):
        _check_messages(body["messages"])
    elif body.get("messages") is not None:
        raise BadRow(Reason.BAD_VALUE, "expected a list of objects", field="body.messages")
    return Body(body=body)


def _body_tokens(body: dict[str, Any]) -> int | None:
    """The output tokens that a whole body asks for, in all of its answers; None where it sets no limit."""
    limit = next((_whole(body, key) for key in LIMITS if body.get(key) is not None), None)
    if limit is None or body.get("n") is None:
        return limit
    return min(limit * _whole(body, "n"), LARGEST_COUNT)


def _whole(body: dict[str, Any], key: str) -> int:
    value = body[key]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_COUNT:
        raise BadRow(Reason.BAD_VALUE, f"expected a whole number from 1, got {value!r}", field=f"body.{key}")
    return value


def native_line(
    turn: RowTurn,
    *,
    offset_ns: int | None,
    session_id: str | None = None,
    turn_index: int | None = None,
    think_s: float | None = None,
    category: str | None = None,
    id: str | None = None,  # noqa: A002  the key's name
) -> bytes:
    """One request as a line of the native form, with its line end. Absent values are left out."""
    line: dict[str, Any] = {
        "timestamp": None if offset_ns is None else offset_ns / NS_PER_S,
        "id": id,
        "session_id": session_id,
        "turn": turn_index,
        "category": category,
        **_asked(turn.prompt),
        "input_tokens": None if isinstance(turn.prompt, TokenIds) else turn.input_tokens,
        "output_tokens": turn.output_tokens,
        "think_s": think_s,
        "answer": turn.answer,
        "hash_ids": turn.blocks or None,
        "block_tokens": turn.block_tokens,
    }
    if session_id is not None and turn.prompt is not None:
        line["continues_answers"] = turn.continues_answers
    return msgspec.json.encode({key: value for key, value in line.items() if value is not None}) + b"\n"


def _asked(prompt: Prompt | None) -> dict[str, Any]:
    match prompt:
        case Text():
            return {"prompt": prompt.text}
        case Messages():
            return {"messages": prompt.messages}
        case TokenIds():
            return {"token_ids": prompt.ids}
        case Body():
            return {"body": prompt.body}
        case None:
            return {}
