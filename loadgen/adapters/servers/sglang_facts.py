"""What an SGLang server tells of its configuration: `/server_info`, its resolved `srt/server_args.py`."""

from collections.abc import Mapping
from typing import Any

from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.engine_facts import EngineFacts, count, flag, mapping, text
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

_STATE = ("internal_states", "version")
"""What changes while the server runs, or stands elsewhere."""
_THRESHOLDS = ("speculative_accept_threshold_single", "speculative_accept_threshold_acc")


async def sglang_facts(control: Control) -> EngineFacts:
    """Everything that the server tells. Acceptance forced through its environment is not among it."""
    info = await control.json_page("/server_info") or await control.json_page("/get_server_info")
    algorithm = text(info.get("speculative_algorithm"))
    return EngineFacts(
        version=text(info.get("version")),
        max_model_len=count(info.get("context_length")),
        configuration=_configuration(info) if info else None,
        speculation=speculation_of(info) if algorithm is not None else None,
        page={key: value for key, value in info.items() if key not in _STATE} or None,
        cache_reset_path="/flush_cache",
        tells_acceptance=None,
    )


def speculation_of(told: Mapping[str, Any]) -> SpeculationConfiguration:
    """The draft configuration. A tree of drafts is as deep as its steps; where there are none, drafts are a chain.

    Thresholds below 1 accept tokens that the target would not have drawn.
    """
    chain = count(told.get("speculative_num_draft_tokens"))
    steps = count(told.get("speculative_num_steps"))
    thresholds = {name: value for name in _THRESHOLDS if isinstance(value := told.get(name), int | float)}
    return SpeculationConfiguration(
        method=text(told.get("speculative_algorithm")),
        draft_tokens=steps if steps is not None else None if chain is None else chain - 1,
        draft_model=text(told.get("speculative_draft_model_path")),
        lossy=tuple(f"{name}={value:g}" for name, value in thresholds.items() if value < 1) if thresholds else None,
    )


def _configuration(info: Mapping[str, Any]) -> ServerConfiguration:
    states = info.get("internal_states")
    state = mapping(states[0]) if isinstance(states, list) and states else {}
    tokens, block = count(info.get("max_total_num_tokens")), count(info.get("page_size"))
    no_radix, no_graphs = flag(info.get("disable_radix_cache")), flag(info.get("disable_cuda_graph"))
    no_overlap = flag(info.get("disable_overlap_schedule"))
    running = count(info.get("max_running_requests"))
    return ServerConfiguration(
        speculates=text(info.get("speculative_algorithm")) is not None,
        prefix_caching=None if no_radix is None else not no_radix,
        max_num_seqs=running or count(state.get("effective_max_running_requests_per_dp")),
        max_num_batched_tokens=count(info.get("chunked_prefill_size")),
        max_model_len=count(info.get("context_length")),
        dtype=text(info.get("dtype")),
        quantization=text(info.get("quantization")),
        tensor_parallel=count(info.get("tp_size")),
        kv_blocks=tokens // block if tokens is not None and block is not None else None,
        kv_block_tokens=block,
        attention_backend=text(info.get("attention_backend")),
        cuda_graph_mode=None if no_graphs is None else "none" if no_graphs else "decode",
        async_scheduling=None if no_overlap is None else not no_overlap,
    )
