"""The configuration that a vLLM server tells of itself: `/server_info` and the labels of `vllm:cache_config_info`."""

from typing import Any

from loadgen.sim.server.dialect import ServerFacts

VERSION = "0.32.0+simulated"
"""The release that is imitated, and that it is."""


def server_info(facts: ServerFacts, *, as_json: bool) -> dict[str, Any]:
    """The page of the development mode. The host is not the one that is simulated, so nothing is said of it."""
    resolved = _resolved(facts)
    told = resolved if as_json else ", ".join(f"{name}={value!r}" for name, value in resolved.items())
    return {"vllm_config": told, "vllm_env": {}, "system_env": {"vllm_version": VERSION}}


def cache_configuration(facts: ServerFacts) -> dict[str, Any]:
    """The KV cache as resolved at the start, with vLLM's defaults for all that is not simulated."""
    size_tokens = facts.kv_blocks * facts.block_tokens
    return {
        "block_size": facts.block_tokens,
        "user_specified_block_size": False,
        "kv_cache_layout": None,
        "prefix_match_unit": None,
        "gpu_memory_utilization": 0.92,
        "cache_dtype": "auto",
        "is_attention_free": False,
        "num_gpu_blocks_override": None,
        "sliding_window": None,
        "enable_prefix_caching": facts.prefix_caching,
        "prefix_caching_hash_algo": "sha256",
        "prefix_cache_retention_interval": 0,
        "kv_cache_dtype_skip_layers": [],
        "mamba_page_size_padded": None,
        "skip_page_size_padded": None,
        "mamba_block_size": None,
        "mamba_cache_dtype": "auto",
        "mamba_ssm_cache_dtype": "auto",
        "mamba_cache_mode": "none",
        "enable_mamba_shared_prefix_checkpoint": False,
        "replayssm_buffer_len": 16,
        "use_replayssm": False,
        "use_kda_recoverssm": False,
        "num_gpu_blocks": facts.kv_blocks,
        "num_cpu_blocks": None,
        "effective_attention_block_size": facts.block_tokens,
        "kv_cache_size_tokens": size_tokens,
        "kv_cache_max_concurrency": size_tokens / facts.max_model_len,
        "hash_block_size": None,
        "cache_hit_alignment_tokens": None,
        "kv_sharing_fast_prefill": False,
        "swa_bounded_replay": True,
        "kv_cache_memory_bytes": None,
        "kv_offloading_size": None,
        "kv_offloading_backend": "native",
        "_block_size_resolved": True,
    }


def _resolved(facts: ServerFacts) -> dict[str, Any]:
    """What decides about speed, section by section, as vLLM would have resolved it. `cudagraph_mode` 2 is full graphs
    for decoding and pieces otherwise, its default.
    """
    return {
        "model_config": {
            "model": facts.model,
            "tokenizer": facts.model,
            "dtype": "torch.bfloat16",
            "seed": 0,
            "max_model_len": facts.max_model_len,
            "quantization": None,
            "enforce_eager": False,
            "max_logprobs": 20,
            "logprobs_mode": "raw_logprobs",
            "served_model_name": facts.model,
            "generation_config": "auto",
        },
        "cache_config": cache_configuration(facts),
        "parallel_config": {
            "pipeline_parallel_size": 1,
            "tensor_parallel_size": facts.gpus,
            "data_parallel_size": 1,
            "enable_expert_parallel": False,
        },
        "scheduler_config": {
            "runner_type": "generate",
            "max_num_batched_tokens": facts.token_budget,
            # set where vLLM speculates, so that two arms differ here without being set differently
            "max_num_scheduled_tokens": None if facts.speculator is None else facts.token_budget,
            "max_num_seqs": facts.max_sequences,
            "enable_chunked_prefill": True,
            "policy": "fcfs",
            "async_scheduling": False,
            "stream_interval": 1,
        },
        "device_config": {"device": "cuda"},
        "load_config": {"load_format": "auto"},
        "attention_config": {"backend": None},
        "lora_config": None,
        "speculative_config": _speculation(facts),
        "observability_config": {
            "per_request_spec_decode_metrics": facts.per_request_speculation or "none",
            "custom_histogram_buckets": None,
        },
        "quant_config": None,
        "compilation_config": {"mode": 3, "backend": "inductor", "cudagraph_mode": 2, "cudagraph_capture_sizes": []},
        "kv_transfer_config": None,
        "optimization_level": 2,
        "performance_mode": "balanced",
    }


def _speculation(facts: ServerFacts) -> dict[str, Any] | None:
    speculator = facts.speculator
    if speculator is None:
        return None
    own = {"method": speculator.method.value, "num_speculative_tokens": speculator.draft_tokens}
    return own | dict(facts.speculation)
