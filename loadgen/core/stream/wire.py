"""The JSON of OpenAI-compatible responses, as far as it is read here: shapes, and decoding that survives odd ones.

One shape serves the chunks of a stream and the one object of a plain response. Unknown fields are skipped, a null is an
absent field. Layouts: OpenAI's API reference; vLLM's `metrics`, `token_ids`, `prompt_token_ids`; SGLang's `sglext`;
llama.cpp's `timings`.
"""

import json
import re
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Meta, Raw, Struct

Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]  # more tokens than that in one answer is no count
Shape = TypeVar("Shape", bound=Struct)

_SURROGATE = re.compile("[\ud800-\udfff]")


class Part(Struct, gc=False):
    """A piece of message content."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None


class Function(Struct, gc=False):
    """A called function's name and (a fragment of) its arguments; some servers send them as an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class ToolCall(Struct, gc=False):
    """A tool call or a fragment of one; fragments of one call share its index."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Message(Struct, gc=False):
    """A chat delta or a whole chat message."""

    content: str | list[Part] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: Function | None = None


class Logprobs(Struct, gc=False):
    """One entry a token: in `content` and `refusal` for chat, in `tokens` for completions."""

    content: list[Raw] | None = None
    refusal: list[Raw] | None = None
    tokens: list[Raw] | None = None


class TokenDetails(Struct, gc=False):
    """What is inside a prompt's or an answer's token count."""

    cached_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class UsageBlock(Struct, gc=False):
    """Token counts: `prompt_*` and `completion_*`, `input_*` and `output_*` for responses."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None
    reasoning_tokens: Count | None = None
    prompt_cache_hit_tokens: Count | None = None


class Choice(Struct, gc=False):
    """One of the n answers of a chat or completions request."""

    index: int | None = None
    delta: Message | None = None
    message: Message | None = None
    text: str | None = None
    finish_reason: str | None = None
    token_ids: list[int] | None = None
    prompt_token_ids: list[int] | None = None
    logprobs: Logprobs | None = None
    usage: UsageBlock | None = None


class VllmSpeculation(Struct, gc=False):
    """vLLM's acceptance of one request; the per-step lists at its `detailed` level."""

    num_spec_steps: Count | None = None
    num_draft_tokens: Count | None = None
    num_accepted_draft_tokens: Count | None = None
    num_spec_tokens: Count | None = None
    acceptance_histogram: list[Count] | None = None
    per_step_accepted: list[Count] | None = None
    per_step_drafted: list[Count] | None = None


class VllmMetrics(Struct, gc=False):
    """vLLM's per-request metrics."""

    speculative_decoding: VllmSpeculation | None = None


class SglangSpeculation(Struct, gc=False):
    """SGLang's acceptance of one request; what it does not know it gives as 0 or an empty list."""

    spec_verify_ct: Count | None = None
    spec_num_proposed_drafts: Count | None = None
    spec_num_correct_drafts: Count | None = None
    spec_correct_drafts_histogram: list[Count] | None = None


class SglangExtension(Struct, gc=False):
    """SGLang's additions to a response; of several choices the accounts are a list."""

    spec_tokens_details: SglangSpeculation | list[SglangSpeculation] | None = None


class LlamaTimings(Struct, gc=False):
    """llama.cpp's account of one request: tokens from cache, evaluated, generated, drafted, accepted."""

    cache_n: Count | None = None
    prompt_n: Count | None = None
    predicted_n: Count | None = None
    draft_n: Count | None = None
    draft_n_accepted: Count | None = None


class Chunk(Struct, gc=False):
    """One event of a chat or completions stream, or a whole response."""

    choices: list[Choice] | None = None
    usage: UsageBlock | None = None
    error: Any = None
    metrics: VllmMetrics | None = None
    sglext: SglangExtension | None = None
    timings: LlamaTimings | None = None
    prompt_token_ids: list[int] | None = None
    object: str | None = None
    message: str | None = None
    detail: Any = None


class Item(Struct, gc=False):
    """An output item of the responses API: a message, reasoning, or a call (its type ends in `_call`)."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    content: list[Part] | None = None
    summary: list[Part] | None = None


class IncompleteDetails(Struct, gc=False):
    """Why a response stopped early."""

    reason: str | None = None


class Response(Struct, gc=False):
    """The responses API's response, whole or so far."""

    status: str | None = None
    error: Any = None
    incomplete_details: IncompleteDetails | None = None
    output: list[Item] | None = None
    usage: UsageBlock | None = None
    metrics: VllmMetrics | None = None
    object: str | None = None
    message: str | None = None
    detail: Any = None


class ResponseEvent(Struct, gc=False):
    """One event of a responses stream."""

    type: str | None = None
    delta: str | None = None
    item: Item | None = None
    response: Response | None = None
    logprobs: list[Raw] | None = None
    output_index: int | None = None
    error: Any = None
    message: str | None = None


class UnreadableError(Exception):
    """Bytes that are not a JSON object; the message says what was expected and how they begin."""


def read_leniently(data: bytes, shape: type[Shape]) -> tuple[Shape, bool]:
    """The second attempt at bytes that did not decode as `shape`, and whether their text had to be repaired.

    Invalid UTF-8 and lone surrogates become U+FFFD, NaN and infinities null; a field of another type than documented is
    left out. Raises UnreadableError when it still is no JSON object.
    """
    repaired = False
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        repaired = True
        try:
            loose = json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None)
            value = msgspec.json.decode(_SURROGATE.sub("\ufffd", json.dumps(loose, ensure_ascii=False)))
        except (ValueError, RecursionError) as fault:
            raise UnreadableError(f"expected a JSON object ({fault})") from None
    if value is None:
        return shape(), repaired
    if not isinstance(value, dict):
        raise UnreadableError("expected a JSON object")
    return _fitting(value, shape), repaired


def _fitting(value: Any, kind: Any) -> Any:
    """`value` as `kind`, without the members that do not fit; None when nothing fits."""
    if kind is Raw:  # only counted
        return Raw()
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass
    for option in get_args(kind) or (kind,):
        if isinstance(option, type) and issubclass(option, Struct) and isinstance(value, dict):
            fields = {field.name: field.type for field in msgspec.structs.fields(option)}
            return option(**{name: _fitting(value[name], fields[name]) for name in fields.keys() & value.keys()})
        if get_origin(option) is list and isinstance(value, list):
            return [fit for member in value if (fit := _fitting(member, get_args(option)[0])) is not None]
    return None
