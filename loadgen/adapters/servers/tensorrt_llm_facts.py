"""What a TensorRT-LLM server tells of its configuration: info metrics of newer versions, and gauges of limits.

Names and labels are those of `tensorrt_llm/metrics/collector.py` and of `tensorrt_llm/serve/openai_server.py`.
"""

from loadgen.adapters.servers.engine_facts import EngineFacts, count, flag, info_labels, text
from loadgen.adapters.servers.exposition import Page, read_page
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration

_SEQUENCES = ("trtllm_max_batch_size_static", "trtllm_max_num_active_requests")
_BLOCKS = ("trtllm_kv_cache_max_blocks",)
_BLOCK_TOKENS = ("trtllm_kv_cache_tokens_per_block",)
_TOKENS = ("trtllm_max_num_tokens_runtime",)


def tensorrt_llm_facts(metrics: str) -> EngineFacts:
    """What the Prometheus page tells; nothing where there is none. Relaxed and forced acceptance are not on it."""
    model = info_labels(metrics, "trtllm_model_config_info")
    parallel = info_labels(metrics, "trtllm_parallel_config_info")
    drafts = info_labels(metrics, "trtllm_speculative_config_info")
    cache = info_labels(metrics, "trtllm_kv_cache_config_info", "trtllm_cache_config_info")
    limits = _limits(metrics)
    page = {"model": model, "parallel": parallel, "speculative": drafts, "kv_cache": cache}
    # what has no drafts has no draft configuration beside the other ones
    speculates = flag(drafts.get("spec_enabled")) if drafts else False if model else None
    configuration = ServerConfiguration(
        speculates=speculates,
        prefix_caching=flag(cache.get("enable_block_reuse")),
        max_num_seqs=_number(limits, _SEQUENCES),
        max_num_batched_tokens=_number(limits, _TOKENS),
        max_model_len=count(model.get("max_model_len")),
        dtype=text(model.get("dtype")),
        quantization=text(model.get("quantization")),
        tensor_parallel=count(parallel.get("tensor_parallel_size")),
        kv_blocks=_number(limits, _BLOCKS),
        kv_block_tokens=_number(limits, _BLOCK_TOKENS) or count(cache.get("page_size")),
    )
    return EngineFacts(
        max_model_len=configuration.max_model_len,
        configuration=None if configuration == ServerConfiguration() else configuration,
        speculation=SpeculationConfiguration(
            method=text(drafts.get("spec_method")),
            draft_tokens=count(drafts.get("spec_num_tokens")),
            draft_model=text(drafts.get("spec_draft_model")),
        )
        if speculates
        else None,
        page={name: labels for name, labels in page.items() if labels} or None,
    )


def _limits(metrics: str) -> Page:
    try:
        return read_page(metrics, {*_SEQUENCES, *_BLOCKS, *_BLOCK_TOKENS, *_TOKENS})
    except ValueError:
        return Page(())


def _number(limits: Page, names: tuple[str, ...]) -> int | None:
    found = limits.named(names)
    value = found[0].value if len(found) == 1 else None
    return None if value is None else count(round(value))
