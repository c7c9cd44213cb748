"""Which reader an engine's metrics page needs."""

from collections.abc import Callable

from loadgen.adapters.servers.llamacpp_page import llamacpp_samples
from loadgen.adapters.servers.sglang_page import sglang_samples
from loadgen.adapters.servers.tensorrt_llm_page import tensorrt_llm_samples
from loadgen.adapters.servers.vllm_page import vllm_samples
from loadgen.core.server.sample import ServerSample

_READERS: dict[str, Callable[..., tuple[ServerSample, ...]]] = {
    "vllm": vllm_samples,
    "sglang": sglang_samples,
    "llamacpp": llamacpp_samples,
    "tensorrt-llm": tensorrt_llm_samples,
}

PAGE_ENGINES = frozenset(_READERS)
"""The engines whose pages can be read, named as `TargetFacts.engine` names them."""


def samples(engine: str, page: str, *, model: str) -> tuple[ServerSample, ...]:
    """What an engine's metrics page says of the model: one sample a process, counters since each started.

    Raises ValueError, with a reason for people, for a page that cannot be used, and KeyError for an engine that is
    not among PAGE_ENGINES.
    """
    return _READERS[engine](page, model=model)
