"""What a server's streams can carry, by one tiny request a capability."""

from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

from loadgen.adapters.servers.control import Control, Page
from loadgen.adapters.servers.engine_facts import text
from loadgen.core.request import Endpoint
from loadgen.core.stream.sse import SseDecoder

TRIAL_TIMEOUT = httpx2.Timeout(120.0, connect=5.0)
_TRIAL_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the target did with a tiny request that asked for it: True done, False refused or ignored, None not tried.

    `continuous_usage`: counts in every chunk; `token_ids`: the ids of each chunk's tokens (`return_token_ids`);
    `acceptance`: an answer's account of its own speculation, None too where no draft may have been made.
    """

    streaming: bool | None = None
    usage_in_stream: bool | None = None
    continuous_usage: bool | None = None
    token_ids: bool | None = None
    logprobs: bool | None = None
    acceptance: bool | None = None


async def try_streams(
    control: Control, endpoint: Endpoint, model: str, *, ask_acceptance: bool = False
) -> tuple[Capabilities, dict[str, str]]:
    """The capabilities, and the server's reason by each that was refused. Where the first request fails, that is all.

    `ask_acceptance` adds SGLang's field to the request for usage; others need none.
    """
    refusals: dict[str, str] = {}

    async def chunks(capability: str, **asked: Any) -> list[dict[str, Any]] | None:
        body = _tiny(endpoint, model) | asked
        try:
            page = await control.fetch("POST", f"/v1{endpoint.path}", TRIAL_TIMEOUT, body)
        except httpx2.HTTPError as fault:
            refusals[capability] = str(fault) or type(fault).__name__
            return None
        if not 200 <= page.status < 300:
            refusals[capability] = f"HTTP {page.status}: {_message(page)}"
            return None
        if not page.content_type.startswith("text/event-stream"):
            refusals[capability] = f"answered with {page.content_type or 'no content type'}, not with an event stream"
            return None
        return _json_events(page.body)

    if endpoint is Endpoint.RESPONSES:
        found = await chunks("streaming")
        usage = found is not None and any(_usage(chunk.get("response")) for chunk in found)
        return Capabilities(streaming=bool(found), usage_in_stream=usage if found else None), refusals

    with_usage: dict[str, Any] = {"stream_options": {"include_usage": True}}
    if ask_acceptance:
        with_usage["return_spec_tokens_details"] = True
    found = await chunks("usage_in_stream", **with_usage)
    usage = found is not None and any(_usage(chunk) for chunk in found)
    if found is None:
        found = await chunks("streaming")
    if not found:
        return Capabilities(streaming=bool(found), usage_in_stream=False if found is not None else None), refusals
    every = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    continuous = await chunks("continuous_usage", **every)
    ids = await chunks("token_ids", return_token_ids=True)
    probabilities = {"logprobs": True} if endpoint is Endpoint.CHAT else {"logprobs": 1}
    logprobs = await chunks("logprobs", **probabilities)
    return (
        Capabilities(
            streaming=bool(found),
            usage_in_stream=usage,
            # one chunk with content and counts may be no more than a last chunk that carries both
            continuous_usage=sum(bool(_choices(chunk)) and _usage(chunk) for chunk in continuous or ()) > 1,
            token_ids=any(choice.get("token_ids") for chunk in ids or () for choice in _choices(chunk)),
            logprobs=any(choice.get("logprobs") for chunk in logprobs or () for choice in _choices(chunk)),
            acceptance=True if any(map(_acceptance, found)) else None,
        ),
        refusals,
    )


def _tiny(endpoint: Endpoint, model: str) -> dict[str, Any]:
    """A request of one word for a few tokens."""
    match endpoint:
        case Endpoint.CHAT:
            asked: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": _TRIAL_TOKENS}
        case Endpoint.COMPLETIONS:
            asked = {"prompt": "Hello", "max_tokens": _TRIAL_TOKENS}
        case Endpoint.RESPONSES:
            asked = {"input": "Hello", "max_output_tokens": _TRIAL_TOKENS}
    return {"model": model, "stream": True} | asked


def _json_events(body: bytes) -> list[dict[str, Any]]:
    """The stream's events that are JSON objects without an error."""
    found = []
    for event in SseDecoder().feed(body):
        try:
            chunk = msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(chunk, dict) and not chunk.get("error"):
            found.append(chunk)
    return found


def _choices(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    choices = chunk.get("choices")
    return [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []


def _usage(chunk: Any) -> bool:
    """Whether a chunk or a response object carries an output token count."""
    usage = chunk.get("usage") if isinstance(chunk, dict) else None
    counts = ("completion_tokens", "output_tokens")
    return isinstance(usage, dict) and any(_is_count(usage.get(name)) for name in counts)


def _acceptance(chunk: dict[str, Any]) -> bool:
    """Whether a chunk has an account of speculation: vLLM's, SGLang's or llama.cpp's."""
    places = (("metrics", "speculative_decoding"), ("sglext", "spec_tokens_details"), ("timings", "draft_n"))
    return any(isinstance(block := chunk.get(outer), dict) and block.get(inner) is not None for outer, inner in places)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _message(page: Page) -> str:
    """The server's own words about an error, at most 200 characters."""
    body = page.json_object()
    error = body.get("error", body)
    said = error.get("message") if isinstance(error, dict) else error
    return (text(said) or page.text).strip()[:200]
