"""The bodies of OpenAI's two text routes: read, checked and refused as vLLM does it, in its words."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loadgen.sim.server.exchange import Asked, RefusedError, Route
from loadgen.sim.server.language import GREEDY_BELOW
from loadgen.sim.server.prompts import chat_ids
from loadgen.sim.server.tokens import VOCABULARY_SIZE, ids_of

COMPLETION_TOKENS = 16
"""Output tokens of a completion that does not say how many it wants."""

_MOST_CHOICES, _MOST_LOGPROBS, _MOST_SALT_CHARACTERS = 16_384, 20, 128
_MOST_FAULTS, _MOST_INPUT_CHARACTERS = 10, 200

_Token = Annotated[int, Field(ge=0)]


class _StreamOptions(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _Body(BaseModel):
    """The fields of both routes; further ones are kept as they are."""

    model_config = ConfigDict(extra="allow", from_attributes=True)

    model: str | None = None
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    n: int | None = 1
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    temperature: float | None = None
    top_p: float | None = None
    min_p: float | None = None
    logit_bias: dict[str, float] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    return_token_ids: bool | None = None
    stream_interval: Annotated[int, Field(ge=1)] | None = None
    cache_salt: str | None = None


class _Chat(_Body):
    messages: list[dict[str, Any]]
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0


class _Completion(_Body):
    prompt: list[_Token] | list[list[_Token]] | str | list[str]
    logprobs: int | None = None
    echo: bool | None = False


def read_request(
    route: Route, body: bytes, *, request_id: str, model: str, max_model_len: int, speculates: bool = False
) -> Asked:
    """The request in a body, for a server of this model and context. Raises RefusedError.

    A server that `speculates` refuses what verification does not keep to. What this server alone refuses: several
    prompts in one completion, and a prompt echoed.
    """
    fields = _object(body)
    _check_fields(route, fields)
    try:
        read = _Chat.model_validate(fields) if route is Route.CHAT else _Completion.model_validate(fields)
    except ValidationError as wrong:
        raise _malformed(wrong.errors(include_url=False)) from None
    if read.model is not None and read.model != model:
        message = f"The model `{read.model}` does not exist. Valid aliases: {model}."
        raise RefusedError(404, "NotFoundError", message, param="model")
    wanted = _wanted_tokens(read, max_model_len)
    prompt_ids = _prompt_ids(read, max_model_len)
    left = max_model_len - len(prompt_ids)
    options = read.stream_options or _StreamOptions()
    asked = Asked(
        route=route,
        request_id=request_id,
        model=model,
        prompt_ids=prompt_ids,
        stream=bool(read.stream),
        n=1 if read.n is None else read.n,
        max_tokens=left if wanted is None else min(wanted, left),
        min_tokens=read.min_tokens,
        ignore_eos=read.ignore_eos,
        temperature=1.0 if read.temperature is None else read.temperature,
        top_p=1.0 if read.top_p is None else read.top_p,
        seed=None if read.seed == -1 else read.seed,
        stop=(read.stop,) if isinstance(read.stop, str) else tuple(read.stop or ()),
        include_usage=bool(options.include_usage),
        continuous_usage=bool(options.continuous_usage_stats),
        return_token_ids=bool(read.return_token_ids),
        logprobs=_alternatives(read),
        stream_interval=1 if read.stream_interval is None else read.stream_interval,
        cache_salt=read.cache_salt,
        fields=read.model_extra or {},
    )
    _check_values(asked, 0.0 if read.min_p is None else read.min_p)
    if speculates and (read.min_p or read.logit_bias):
        raise _refused("The min_p and logit_bias sampling parameters are not yet supported with speculative decoding.")
    return asked


def _object(body: bytes) -> Any:
    if not body:
        raise _malformed([{"type": "missing", "loc": (), "msg": "Field required", "input": None}])
    try:
        return json.loads(body)
    except json.JSONDecodeError as wrong:
        place, context = (wrong.pos,), {"error": wrong.msg}
        raise _malformed(
            [{"type": "json_invalid", "loc": place, "msg": "JSON decode error", "input": {}, "ctx": context}]
        ) from None
    except (UnicodeDecodeError, RecursionError):
        raise RefusedError(400, "Bad Request", "There was an error parsing the body") from None


def _check_fields(route: Route, fields: Any) -> None:
    """What is looked at before the types of all fields are."""
    if not isinstance(fields, dict):
        return
    if route is Route.COMPLETIONS and fields.get("prompt") in (None, ""):
        raise _refused("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")
    if fields.get("stream_options") and not fields.get("stream"):
        raise _refused("Stream options can only be defined when `stream=True`.", "stream_options")
    name = "top_logprobs" if route is Route.CHAT else "logprobs"
    if (number := fields.get(name)) is not None:
        if not isinstance(number, int | float):
            raise _refused(f"`{name}` must be an integer.", name, number)
        if number < 0 and number != -1:
            raise _refused(f"`{name}` must be a positive value or -1.", name, number)
        if route is Route.CHAT and number and not fields.get("logprobs"):
            raise _refused("when using `top_logprobs`, `logprobs` must be set to true.", name)
    if (salt := fields.get("cache_salt")) is not None:
        if not isinstance(salt, str) or not salt:
            raise _refused("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt")
        if len(salt) > _MOST_SALT_CHARACTERS or set(salt) & set("@/\\\0"):
            raise _refused(
                f"Parameter 'cache_salt' must be at most {_MOST_SALT_CHARACTERS} characters and must not contain "
                "'@', '/', '\\\\', or NUL.",
                "cache_salt",
            )


def _wanted_tokens(read: _Chat | _Completion, max_model_len: int) -> int | None:
    """The output tokens asked for; None for as many as the context has room for."""
    name, wanted = "max_tokens", read.max_tokens
    if isinstance(read, _Completion):
        wanted = COMPLETION_TOKENS if wanted is None else wanted
    elif read.max_completion_tokens is not None:
        name, wanted = "max_completion_tokens", read.max_completion_tokens
    if wanted is not None and wanted > max_model_len:
        raise _refused(
            f"{name}={wanted} cannot be greater than max_model_len={max_model_len}. "
            "Please request fewer output tokens.",
            name,
            wanted,
        )
    return wanted


def _prompt_ids(read: _Chat | _Completion, max_model_len: int) -> tuple[int, ...]:
    if isinstance(read, _Chat):
        ids, was_text = chat_ids(read.messages), True
    else:
        ids, was_text = _completion_ids(read)
    if len(ids) > max_model_len:
        seen = min(len(ids), max_model_len + 1) if was_text else len(ids)
        qualifier = "at least " if seen == max_model_len + 1 else ""
        raise _refused(
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"{qualifier}{seen} input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt.",
            "input_tokens",
            seen,
        )
    return tuple(ids)


def _completion_ids(read: _Completion) -> tuple[list[int], bool]:
    """A completion's prompt, and whether it was given as text."""
    if read.echo:
        raise _refused("echo is not supported by this server.", "echo")
    prompt: Any = read.prompt
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
        if len(prompt) > 1:
            raise _refused("this server completes one prompt a request.", "prompt", len(prompt))
        prompt = prompt[0]
    if not prompt:
        raise _refused("You must pass at least one prompt")
    if isinstance(prompt, str):
        return ids_of(prompt), True
    if (highest := max(prompt)) >= VOCABULARY_SIZE:
        raise _refused(f"Token id {highest} is out of vocabulary")
    return prompt, False


def _alternatives(read: _Chat | _Completion) -> int | None:
    """How many alternatives of each token are wanted; None for no log-probabilities."""
    wanted = read.logprobs if isinstance(read, _Completion) else (read.top_logprobs or 0) if read.logprobs else None
    return VOCABULARY_SIZE if wanted == -1 else wanted


def _check_values(asked: Asked, min_p: float) -> None:
    if asked.n < 1:
        raise _refused(f"n must be at least 1, got {asked.n}.")
    if asked.n > _MOST_CHOICES:
        raise _refused(f"n must be at most {_MOST_CHOICES}, got {asked.n}.")
    if not math.isfinite(asked.temperature):
        message = f"temperature must be a finite number, got {asked.temperature}."
        raise _refused(message, "temperature", asked.temperature)
    if asked.temperature < 0:
        message = f"temperature must be non-negative, got {asked.temperature}."
        raise _refused(message, "temperature", asked.temperature)
    if asked.temperature > 2:
        message = f"temperature must be in [0, 2], got {asked.temperature}."
        raise _refused(message, "temperature", asked.temperature)
    if not 0 < asked.top_p <= 1:
        raise _refused(f"top_p must be in (0, 1], got {asked.top_p}.", "top_p", asked.top_p)
    if not 0 <= min_p <= 1:
        raise _refused(f"min_p must be in [0, 1], got {min_p}.")
    if asked.max_tokens < 1:
        message = f"max_tokens must be at least 1, got {asked.max_tokens}."
        raise _refused(message, "max_tokens", asked.max_tokens)
    if asked.min_tokens < 0:
        raise _refused(f"min_tokens must be greater than or equal to 0, got {asked.min_tokens}.")
    if asked.min_tokens > asked.max_tokens:
        raise _refused(
            f"min_tokens must be less than or equal to max_tokens={asked.max_tokens}, got {asked.min_tokens}."
        )
    if "" in asked.stop:
        raise _refused("stop cannot contain an empty string.")
    if asked.n > 1 and asked.temperature < GREEDY_BELOW:
        raise _refused(f"n must be 1 when using greedy sampling, got {asked.n}.")
    if asked.logprobs is not None and asked.logprobs > _MOST_LOGPROBS:
        message = f"Requested sample logprobs of {asked.logprobs}, which is greater than max allowed: {_MOST_LOGPROBS}"
        raise _refused(message, "logprobs", asked.logprobs)


def _refused(message: str, param: str | None = None, value: object = None) -> RefusedError:
    """A request that is well formed and wrong. The message ends with the parameter and its value, where given."""
    extras = [f"{name}={text}" for name, text in (("parameter", param), ("value", value)) if text is not None]
    if extras:
        message += f" ({', '.join(extras)})"
    return RefusedError(400, "BadRequestError", message, param=param)


def _malformed(faults: Sequence[Mapping[str, Any]]) -> RefusedError:
    """A request that is not well formed, with every fault as the validating library names it."""
    shown = [{**fault, "loc": _place(fault["loc"]), "input": _short(fault["input"])} for fault in faults]
    label = "error" if len(faults) == 1 else "errors"
    lines = [f"{len(faults)} validation {label}:", *(f"  {fault}" for fault in shown[:_MOST_FAULTS])]
    if len(faults) > _MOST_FAULTS:
        lines.append(f"  ...and {len(faults) - _MOST_FAULTS} more {label}")
    return RefusedError(400, "Bad Request", "\n".join(lines), param=shown[0]["loc"])


def _place(location: Sequence[int | str]) -> str:
    """Where in the body, without the names of a union's alternatives."""
    return ".".join(["body", *(str(step) for step in location if step != "str" and "[" not in str(step))])


def _short(value: Any) -> str:
    match value:
        case str():
            return value if len(value) <= _MOST_INPUT_CHARACTERS else value[:_MOST_INPUT_CHARACTERS] + "...[truncated]"
        case list() | dict():
            return f"<{type(value).__name__} of {len(value)} items>"
    return str(value)
