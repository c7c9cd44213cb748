"""Request bodies: a turn and what the run's requests share, as the JSON that is sent."""

from collections.abc import Sequence
from typing import Any

import msgspec

from loadgen.core.errors import ConfigError
from loadgen.core.request import LIMITS, Body, Endpoint, JsonObject, Messages, RequestTemplate, Text, TokenIds, Turn

_encode = msgspec.json.Encoder().encode


def encode_body(template: RequestTemplate, turn: Turn, history: Sequence[JsonObject] = ()) -> bytes:
    """The body of one request as JSON bytes.

    `history` are the messages before this turn, the server's answers among them; empty for a turn that carries its
    whole prompt. Raises ConfigError for a prompt that the endpoint cannot take.
    """
    return _encode(body_of(template, turn, history))


def body_of(template: RequestTemplate, turn: Turn, history: Sequence[JsonObject] = ()) -> dict[str, Any]:
    """The body of one request. `extra_body` is laid over it last, key by key at the top level."""
    body = dict(turn.prompt.body) if isinstance(turn.prompt, Body) else _prompt_fields(template.endpoint, turn, history)
    body.update(_output_limits(template, turn, body))
    sampling = template.sampling
    if sampling.temperature is not None:
        body["temperature"] = sampling.temperature
    if sampling.seed is not None:
        body["seed"] = sampling.seed
    if sampling.ignore_eos:
        body["ignore_eos"] = True
    body["model"] = template.model
    body["stream"] = template.stream
    if template.stream and template.include_usage and template.endpoint is not Endpoint.RESPONSES:
        options: dict[str, Any] = {"include_usage": True}
        if template.continuous_usage:
            options["continuous_usage_stats"] = True
        body["stream_options"] = options
    if template.return_token_ids:
        body["return_token_ids"] = True
    body.update(template.extra_body)
    return body


def messages_of(turn: Turn) -> tuple[JsonObject, ...]:
    """What a turn adds to a conversation's messages. Raises ConfigError for a prompt of token ids or a whole body."""
    match turn.prompt:
        case Messages(messages=messages):
            return messages
        case Text(text=text):
            return ({"role": "user", "content": text},)
        case _:
            raise ConfigError("a conversation that continues from the answers needs turns of text or messages")


def _prompt_fields(endpoint: Endpoint, turn: Turn, history: Sequence[JsonObject]) -> dict[str, Any]:
    prompt = turn.prompt
    if endpoint is Endpoint.COMPLETIONS:
        if history:
            raise ConfigError("conversations that continue from the answers need --endpoint chat or responses")
        match prompt:
            case Text(text=text):
                return {"prompt": text}
            case TokenIds(ids=ids):
                return {"prompt": ids}
            case Messages(messages=messages) if len(messages) == 1 and isinstance(messages[0].get("content"), str):
                return {"prompt": messages[0]["content"]}
        raise ConfigError(_where(turn) + "expected a prompt of text or token ids for --endpoint completions")
    if isinstance(prompt, TokenIds):
        raise ConfigError(_where(turn) + f"token-id prompts need --endpoint completions, not {endpoint}")
    if endpoint is Endpoint.RESPONSES:
        if isinstance(prompt, Text) and not history:
            return {"input": prompt.text}
        return {"input": [*history, *messages_of(turn)]}
    return {"messages": [*history, *messages_of(turn)]}


def _output_limits(template: RequestTemplate, turn: Turn, body: JsonObject) -> dict[str, int]:
    """The limits of a whole body, else the data's own output length; at most `--max-tokens` where that is given."""
    asked = {name: body[name] for name in LIMITS if isinstance(body.get(name), int)}
    if not asked and turn.output_tokens is not None:
        asked = {_limit_of(template.endpoint): turn.output_tokens}
    most = template.max_output_tokens
    if most is None:
        return asked
    return {name: min(limit, most) for name, limit in asked.items()} or {_limit_of(template.endpoint): most}


def _limit_of(endpoint: Endpoint) -> str:
    return "max_output_tokens" if endpoint is Endpoint.RESPONSES else "max_tokens"


def _where(turn: Turn) -> str:
    return f"line {turn.source_line}: " if turn.source_line is not None else ""
