"""What a vLLM server tells of its configuration: all of it in the development mode, else what its metrics show.

`/server_info?config_format=json` is the resolved `VllmConfig`; its keys are those of `vllm/config/`.
"""

from collections.abc import Mapping
from typing import Any

from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.engine_facts import EngineFacts, count, flag, info_labels, mapping, text
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

_RESET = "/reset_prefix_cache"
_GRAPH_MODES = {0: "none", 1: "piecewise", 2: "full", (2, 0): "full_decode_only", (2, 1): "full_and_piecewise"}
"""Values of `CUDAGraphMode` in `vllm/config/compilation.py`; two for graphs of decode steps and of mixed ones."""
_RUNNERS = {"0": "v1", "1": "v2", False: "v1", True: "v2"}


async def vllm_facts(control: Control, metrics: str) -> EngineFacts:
    """Everything that the server tells; `metrics` is its metrics page. A series of drafts is there from the start."""
    info = await control.json_page("/server_info?config_format=json")
    resolved = mapping(info.get("vllm_config"))
    reset = await control.page(_RESET)
    page = {key: info[key] for key in ("vllm_config", "vllm_env") if info.get(key)}
    cache = mapping(resolved.get("cache_config")) or info_labels(metrics, "vllm:cache_config_info")
    speculative = resolved.get("speculative_config")
    drafts = (
        isinstance(speculative, dict) if resolved else "vllm:spec_decode_num_drafts" in metrics if metrics else None
    )
    return EngineFacts(
        configuration=_configuration(resolved, cache, mapping(info.get("vllm_env")), drafts),
        speculation=speculation_of(mapping(speculative)) if drafts else None,
        page=page or None,
        # the route takes POST alone: asked with GET it says that it is there and does nothing
        cache_reset_path=_RESET if reset is not None and reset.status == 405 else None,
        tells_acceptance=_tells_acceptance(resolved) if drafts else None,
    )


def speculation_of(told: Mapping[str, Any]) -> SpeculationConfiguration:
    """The draft configuration. Versions without a choice of rejection samplers had the exact one alone."""
    method, sampler = text(told.get("method")), told.get("rejection_sample_method")
    model = text(told.get("model"))
    forced = sampler == "synthetic"
    return SpeculationConfiguration(
        method=method,
        draft_tokens=count(told.get("num_speculative_tokens")),
        draft_model=model if model != method else None,
        forced=forced if told else None,
        forced_acceptance_length=_forced_length(told) if forced else None,
        lossy=(f"rejection_sample_method={sampler}",) if sampler == "fly" else () if told else None,
    )


def _forced_length(told: Mapping[str, Any]) -> float | None:
    length, rates = told.get("synthetic_acceptance_length"), told.get("synthetic_acceptance_rates")
    if isinstance(length, int | float):
        return float(length)
    return 1 + sum(rates) if isinstance(rates, list) and all(isinstance(rate, int | float) for rate in rates) else None


def _configuration(
    resolved: Mapping[str, Any], cache: Mapping[str, Any], environment: Mapping[str, Any], drafts: bool | None
) -> ServerConfiguration | None:
    if not resolved and not cache and drafts is None:
        return None
    model, scheduler = mapping(resolved.get("model_config")), mapping(resolved.get("scheduler_config"))
    dtype = text(model.get("dtype"))
    eager = model.get("enforce_eager") is True
    graphs = mapping(resolved.get("compilation_config")).get("cudagraph_mode")
    return ServerConfiguration(
        speculates=drafts,
        prefix_caching=flag(cache.get("enable_prefix_caching")),
        max_num_seqs=count(scheduler.get("max_num_seqs")),
        max_num_batched_tokens=count(scheduler.get("max_num_batched_tokens")),
        max_model_len=count(model.get("max_model_len")),
        dtype=None if dtype is None else dtype.removeprefix("torch."),
        quantization=text(model.get("quantization")),
        tensor_parallel=count(mapping(resolved.get("parallel_config")).get("tensor_parallel_size")),
        kv_blocks=count(cache.get("num_gpu_blocks")),
        kv_block_tokens=count(cache.get("block_size")),
        attention_backend=text(mapping(resolved.get("attention_config")).get("backend")),
        cuda_graph_mode="none" if eager else _graph_mode(graphs),
        async_scheduling=flag(scheduler.get("async_scheduling")),
        runner=_RUNNERS.get(environment.get("VLLM_USE_V2_MODEL_RUNNER", "")),
    )


def _graph_mode(value: Any) -> str | None:
    if isinstance(value, str):
        return value.lower().removeprefix("cudagraphmode.")
    if isinstance(value, list) and all(isinstance(each, int) for each in value):
        return _GRAPH_MODES.get(tuple(value))
    return _GRAPH_MODES.get(value) if isinstance(value, int) else None


def _tells_acceptance(resolved: Mapping[str, Any]) -> bool | None:
    asked = mapping(resolved.get("observability_config")).get("per_request_spec_decode_metrics")
    return asked != "none" if isinstance(asked, str) else None
