"""Request bodies: a turn and what the run's requests share, as the JSON that is sent."""

from collections.abc import Sequence
from typing import Any

import msgspec

from loadgen.core.errors import ConfigError
from loadgen.core.request import Body, Endpoint, JsonObject, Messages, RequestTemplate, Text, TokenIds, Turn

_encode = msgspec.json.Encoder().encode


def encode_body(template: RequestTemplate, turn: Turn, history: Sequence[JsonObject] = ()) -> bytes:
    """The body of one request as JSON bytes.

    `history` are the messages before this turn, the server's answers among them; empty for a turn that carries its
    whole prompt. Raises ConfigError for a prompt that the endpoint cannot take.
    """
    return _encode(body_of(template, turn, history))


def body_of(template: RequestTemplate, turn: Turn, history: Sequence[JsonObject] = ()) -> dict[str, Any]:
    """The body of one request. `extra_body` is laid over it last, key by key at the top level."""
    if isinstance(turn.prompt, Body):
        body = dict(turn.prompt.body)
    else:
        body = _prompt_fields(template.endpoint, turn, history)
        limit = _output_limit(template, turn)
        if limit is not None:
            body["max_output_tokens" if template.endpoint is Endpoint.RESPONSES else "max_tokens"] = limit
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


def _output_limit(template: RequestTemplate, turn: Turn) -> int | None:
    """The data's own output length, at most `--max-tokens` where that is given."""
    if turn.output_tokens is None or template.max_output_tokens is None:
        return turn.output_tokens if template.max_output_tokens is None else template.max_output_tokens
    return min(turn.output_tokens, template.max_output_tokens)


def _where(turn: Turn) -> str:
    return f"line {turn.source_line}: " if turn.source_line is not None else ""
