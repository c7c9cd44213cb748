"""What any OpenAI-compatible target tells before a run: model, engine, version, limits, and what its streams carry.

Facts come from what the server says (`/v1/models`, `/version`, `/metrics`) and from what it did with one tiny request a
capability. An optional page that is missing is a fact, never an error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec

from loadgen.core.errors import ConfigError, TargetError
from loadgen.core.request import Endpoint
from loadgen.core.stream.sse import SseDecoder

PAGE_LIMIT_BYTES = 4 * 2**20
PAGE_TIMEOUT = httpx2.Timeout(10.0, connect=5.0)
TRIAL_TIMEOUT = httpx2.Timeout(120.0, connect=5.0)
_TRIAL_TOKENS = 16
_SHOWN_MODELS = 20

_ENGINES_BY_OWNER = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "tensorrt_llm": "tensorrt-llm"}
_ENGINES_BY_METRIC = {"vllm:": "vllm", "sglang:": "sglang", "llamacpp:": "llamacpp", "trtllm_": "tensorrt-llm"}
_METRICS_PATHS = ("/metrics", "/prometheus/metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the target did with a tiny request that asked for it: True done, False refused or ignored, None not tried.

    `continuous_usage`: counts in every chunk; `token_ids`: the ids of each chunk's tokens (`return_token_ids`).
    """

    streaming: bool | None = None
    usage_in_stream: bool | None = None
    continuous_usage: bool | None = None
    token_ids: bool | None = None
    logprobs: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What is known about a target before the first request of a run.

    `engine` is `vllm`, `sglang`, `llamacpp`, `tensorrt-llm`, another name that the server gave itself, or None.
    `healthy` is None where there is no health page, `metrics_path` where no page is in Prometheus form. `refusals` maps
    a capability that was refused to the server's reason.
    """

    models: tuple[str, ...] = ()
    model: str
    max_model_len: int | None = None
    engine: str | None = None
    engine_version: str | None = None
    healthy: bool | None = None
    metrics_path: str | None = None
    capabilities: Capabilities = Capabilities()
    refusals: dict[str, str] = field(default_factory=dict)


async def probe_target(
    client: httpx2.AsyncClient,
    *,
    endpoint: Endpoint,
    model: str | None = None,
    try_requests: bool = False,
    locate: Callable[[str], str] = str,
) -> TargetFacts:
    """Asks the target what it is, and with `try_requests` what its streams can carry.

    `client` has the server's address as its base URL, and the headers and TLS settings of the run. `locate` gives the
    place of `/v1/models` or `/health` on a server whose API does not begin at its root. Raises TargetError when the
    target cannot be reached or refuses the key, ConfigError when no model is given and the server does not have
    exactly one.
    """
    control = _Control(client, locate)
    listing = await _models(control)
    models = tuple(name for entry in listing if (name := _text(entry.get("id"))) is not None)
    chosen = model if model is not None else _only(models)
    entry = next((entry for entry in listing if entry.get("id") == chosen), {})
    version = await control.json_page("/version")
    health = await control.page("/health")
    metrics_path, metrics = await _metrics(control)
    engine = _engine(version, listing, metrics)
    engine_version, max_model_len = _text(version.get("version")), _number(entry.get("max_model_len"))
    if engine == "llamacpp":
        props = await control.json_page("/props")
        settings = props.get("default_generation_settings")
        engine_version = engine_version or _text(props.get("build_info"))
        max_model_len = max_model_len or _number(settings.get("n_ctx") if isinstance(settings, dict) else None)
    elif engine == "sglang" and engine_version is None:
        engine_version = _text((await control.json_page("/server_info")).get("version"))
    capabilities, refusals = Capabilities(), dict[str, str]()
    if try_requests:
        capabilities, refusals = await _try_requests(control, endpoint, chosen)
    return TargetFacts(
        models=models,
        model=chosen,
        max_model_len=max_model_len,
        engine=engine,
        engine_version=engine_version,
        healthy=None if health is None or health.status in (404, 405, 501) else health.status == 200,
        metrics_path=metrics_path,
        capabilities=capabilities,
        refusals=refusals,
    )


@dataclass(frozen=True, slots=True)
class _Page:
    status: int
    content_type: str
    body: bytes

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object; empty when it is something else."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return {}


@dataclass(frozen=True, slots=True)
class _Control:
    """Bounded exchanges with one server."""

    client: httpx2.AsyncClient
    locate: Callable[[str], str]

    async def fetch(self, method: str, path: str, timeout: httpx2.Timeout, body: dict[str, Any] | None = None) -> _Page:
        """At most PAGE_LIMIT_BYTES of a reply, never following a redirect. Raises httpx2.HTTPError."""
        received = bytearray()
        url = self.locate(path)
        async with self.client.stream(method, url, json=body, timeout=timeout, follow_redirects=False) as response:
            async for piece in response.aiter_bytes():
                received += piece
                if len(received) >= PAGE_LIMIT_BYTES:
                    break
        return _Page(response.status_code, response.headers.get("content-type", ""), bytes(received))

    async def page(self, path: str) -> _Page | None:
        """An optional page; None when it could not be had."""
        try:
            return await self.fetch("GET", path, PAGE_TIMEOUT)
        except httpx2.HTTPError:
            return None

    async def json_page(self, path: str) -> dict[str, Any]:
        """An optional page that is a JSON object; empty when it is not there or something else."""
        page = await self.page(path)
        return page.json_object() if page is not None and page.status == 200 else {}


async def _models(control: _Control) -> list[dict[str, Any]]:
    """The entries of `/v1/models`; none when the server has no such page. Raises TargetError."""
    where = f"{control.client.base_url}".rstrip("/")
    try:
        page = await control.fetch("GET", "/v1/models", PAGE_TIMEOUT)
    except httpx2.TimeoutException as fault:
        raise TargetError(f"{where}: no answer to GET /v1/models within {PAGE_TIMEOUT.read:g} s") from fault
    except (httpx2.HTTPError, OSError) as fault:
        raise TargetError(
            f"{where}: cannot be reached: {fault or type(fault).__name__}{_hint(control.client)}"
        ) from fault
    if page.status in (401, 403):
        raise TargetError(f"{where}: the key was refused (HTTP {page.status}); give one with --api-key-env NAME")
    if 300 <= page.status < 400:
        raise TargetError(f"{where}: redirects elsewhere (HTTP {page.status}); give the final address as --url")
    if page.status >= 500:
        raise TargetError(f"{where}: not ready: GET /v1/models gave HTTP {page.status}")
    entries = page.json_object().get("data") if page.status == 200 else None
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _hint(client: httpx2.AsyncClient) -> str:
    if client.base_url.host in ("localhost", "127.0.0.1", "::1"):
        return " (inside a container, localhost is the container itself)"
    return ""


def _only(models: tuple[str, ...]) -> str:
    if len(models) == 1:
        return models[0]
    if not models:
        raise ConfigError("--model: expected a name, since the server does not list its models")
    shown = ", ".join(models[:_SHOWN_MODELS]) + (", …" if len(models) > _SHOWN_MODELS else "")
    raise ConfigError(f"--model: expected one of the server's {len(models)} models: {shown}")


async def _metrics(control: _Control) -> tuple[str | None, str]:
    """The first path with a page in Prometheus form, and the page."""
    for path in _METRICS_PATHS:
        page = await control.page(path)
        if page is not None and page.status == 200 and not page.content_type.startswith("application/json"):
            text = page.body.decode("utf-8", "replace")
            if any(line and not line.startswith("<") for line in text.splitlines()):
                return path, text
    return None, ""


def _engine(version: dict[str, Any], listing: list[dict[str, Any]], metrics: str) -> str | None:
    """The engine by its own word: `/version`, the owner of its models, else the prefix of its metrics."""
    if said := _text(version.get("engine")):
        return said
    for entry in listing:
        if (engine := _ENGINES_BY_OWNER.get(str(entry.get("owned_by")))) is not None:
            return engine
    for line in metrics.splitlines():
        name = line.removeprefix("# HELP ").removeprefix("# TYPE ")
        for prefix, engine in _ENGINES_BY_METRIC.items():
            if name.startswith(prefix):
                return engine
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


async def _try_requests(control: _Control, endpoint: Endpoint, model: str) -> tuple[Capabilities, dict[str, str]]:
    """One tiny request a capability. The first shows streaming and usage; where it fails, the others are not tried."""
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

    with_usage = {"stream_options": {"include_usage": True}}
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


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _message(page: _Page) -> str:
    """The server's own words about an error, at most 200 characters."""
    body = page.json_object()
    error = body.get("error", body)
    said = error.get("message") if isinstance(error, dict) else error
    return (_text(said) or page.body.decode("utf-8", "replace")).strip()[:200]
