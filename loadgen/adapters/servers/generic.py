"""What a target tells before a run: model, engine, version, limits, configuration, and what its streams carry.

Facts come from what the server says (`/v1/models`, `/version`, `/metrics`, an engine's own pages) and from what it did
with one tiny request a capability. An optional page that is missing is a fact, never an error.
"""

from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import httpx2

from loadgen.adapters.servers.control import PAGE_TIMEOUT, Control, Page
from loadgen.adapters.servers.engine_facts import EngineFacts, count, text
from loadgen.adapters.servers.kept_page import kept_page
from loadgen.adapters.servers.llamacpp_facts import llamacpp_facts
from loadgen.adapters.servers.sglang_facts import sglang_facts
from loadgen.adapters.servers.tensorrt_llm_facts import tensorrt_llm_facts
from loadgen.adapters.servers.trials import Capabilities, try_streams
from loadgen.adapters.servers.vllm_facts import vllm_facts
from loadgen.core.errors import ConfigError, TargetError
from loadgen.core.request import Endpoint
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

_SHOWN_MODELS = 20

_ENGINES_BY_OWNER = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "tensorrt_llm": "tensorrt-llm"}
_ENGINES_BY_METRIC = {"vllm:": "vllm", "sglang:": "sglang", "llamacpp:": "llamacpp", "trtllm_": "tensorrt-llm"}
_METRICS_PATH = "/metrics"
"""Of every engine but TensorRT-LLM, which lists iterations there: to read them takes them away."""
_TENSORRT_LLM_PATH = "/prometheus/metrics"
_AT_METRICS = frozenset({"vllm", "sglang", "llamacpp"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What is known about a target before the first request of a run.

    `engine` is `vllm`, `sglang`, `llamacpp`, `tensorrt-llm`, another name that the server gave itself, or None.
    `healthy` is None where there is no health page, `metrics_path` where no metrics page can be read;
    `unread_metrics_path` is one that is there, and was refused or too slow when it was asked for. `speculation` is None
    for a server that drafts nothing or does not say, which `configuration.speculates` tells apart; `configuration_page`
    is what both were read from, without secrets. `refusals` maps a capability that was refused to the server's reason.
    """

    models: tuple[str, ...] = ()
    model: str
    max_model_len: int | None = None
    engine: str | None = None
    engine_version: str | None = None
    healthy: bool | None = None
    metrics_path: str | None = None
    unread_metrics_path: str | None = None
    configuration: ServerConfiguration | None = None
    speculation: SpeculationConfiguration | None = None
    configuration_page: dict[str, Any] | None = None
    cache_reset_path: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    refusals: dict[str, str] = field(default_factory=dict)


async def probe_target(
    control: Control,
    *,
    endpoint: Endpoint,
    model: str | None = None,
    engine: str | None = None,
    try_requests: bool = False,
) -> TargetFacts:
    """Asks the target what it is, and with `try_requests` what its streams can carry. An `engine` given is believed.

    Raises TargetError when the target cannot be reached or refuses the key, ConfigError when no model is given and the
    server does not have exactly one.
    """
    listing = await _models(control)
    models = tuple(name for entry in listing if (name := text(entry.get("id"))) is not None)
    chosen = model if model is not None else _only(models)
    entry = next((entry for entry in listing if entry.get("id") == chosen), {})
    version = await control.json_page("/version")
    health = await control.page("/health")
    said = engine or _own_word(version, listing)
    read = await _metrics(control, said)
    metrics = read.text
    engine = said or page_engine(metrics)
    told = await _engine_facts(control, engine, metrics)
    capabilities, refusals = Capabilities(acceptance=told.tells_acceptance), dict[str, str]()
    if try_requests:
        capabilities, refusals = await try_streams(control, endpoint, chosen, ask_acceptance=engine == "sglang")
        if capabilities.acceptance is None:
            capabilities = replace(capabilities, acceptance=told.tells_acceptance)
    return TargetFacts(
        models=models,
        model=chosen,
        max_model_len=count(entry.get("max_model_len")) or told.max_model_len,
        engine=engine,
        engine_version=text(version.get("version")) or told.version,
        healthy=None if health is None or health.status in (404, 405, 501) else health.status == 200,
        metrics_path=read.path or await _iterations_path(control, engine),
        unread_metrics_path=read.unread_path,
        configuration=told.configuration,
        speculation=told.speculation,
        configuration_page=kept_page(told.page),
        cache_reset_path=told.cache_reset_path,
        capabilities=capabilities,
        refusals=refusals,
    )


async def _engine_facts(control: Control, engine: str | None, metrics: str) -> EngineFacts:
    match engine:
        case "vllm":
            return await vllm_facts(control, metrics)
        case "sglang":
            return await sglang_facts(control)
        case "tensorrt-llm":
            return tensorrt_llm_facts(metrics)
        case "llamacpp":
            return await llamacpp_facts(control)
        case _:
            return EngineFacts()


async def _models(control: Control) -> list[dict[str, Any]]:
    """The entries of `/v1/models`; none when the server has no such page. Raises TargetError."""
    where = f"{control.client.base_url}".rstrip("/")
    try:
        page = await control.fetch("GET", "/v1/models")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metrics:
    """The path of a page in Prometheus form and the page, or the path of one that is there and could not be read."""

    path: str | None = None
    text: str = ""
    unread_path: str | None = None


async def _metrics(control: Control, engine: str | None) -> _Metrics:
    """The server's page. Where the engine is not known, TensorRT-LLM's is tried first: its other one is a queue."""
    if engine in _AT_METRICS:
        paths: tuple[str, ...] = (_METRICS_PATH,)
    else:
        paths = (_TENSORRT_LLM_PATH,) if engine == "tensorrt-llm" else (_TENSORRT_LLM_PATH, _METRICS_PATH)
    unread = None
    for path in paths:
        try:
            page = await control.fetch("GET", path)
        except httpx2.TimeoutException:
            unread = unread or path
            continue
        except httpx2.HTTPError:
            continue
        if page.status == 200 and _is_prometheus(page):
            return _Metrics(path=path, text=page.text)
        if _is_withheld(page.status):
            unread = unread or path
    return _Metrics(unread_path=unread)


def _is_withheld(status: int) -> bool:
    """Whether a page seems to be there all the same: it redirects, wants a key, or breaks."""
    return 300 <= status < 400 or status in (401, 403, 429) or (status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED)


def _is_prometheus(page: Page) -> bool:
    """Whether a page is one; that of a server that has counted nothing yet may be empty, and says its format."""
    if page.content_type.startswith("application/json"):
        return False
    declared = "version=" in page.content_type
    return declared or any(line and not line.startswith("<") for line in page.text.splitlines())


async def _iterations_path(control: Control, engine: str | None) -> str | None:
    """Where TensorRT-LLM without a Prometheus page lists its iterations; asked so that none of them is taken away."""
    if engine != "tensorrt-llm":
        return None
    try:
        page = await control.fetch("OPTIONS", _METRICS_PATH)
    except httpx2.HTTPError:
        return None
    # a route that takes GET alone says so
    return _METRICS_PATH if page.status in (200, 204, HTTPStatus.METHOD_NOT_ALLOWED) else None


def _own_word(version: dict[str, Any], listing: list[dict[str, Any]]) -> str | None:
    """The engine as the server says it: by `/version`, else by the owner of its models."""
    if said := text(version.get("engine")):
        return said
    owners = (_ENGINES_BY_OWNER.get(str(entry.get("owned_by"))) for entry in listing)
    return next((engine for engine in owners if engine is not None), None)


def page_engine(metrics: str) -> str | None:
    """The engine whose metrics are on a page; None when none is known."""
    for line in metrics.splitlines():
        name = line.removeprefix("# HELP ").removeprefix("# TYPE ")
        for prefix, engine in _ENGINES_BY_METRIC.items():
            if name.startswith(prefix):
                return engine
    return None
