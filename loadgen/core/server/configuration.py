"""How a server is set up, as it told of itself, in names that no engine owns."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationConfiguration:
    """How a server drafts, `method` and `draft_model` in its own words; None for what it does not tell.

    `draft_tokens` are the most that one step can accept. `forced` acceptance is made up, so that the text means
    nothing; `forced_acceptance_length` is what it is set to, bonus token included. `lossy` are the settings, as
    NAME=VALUE, under which the answers no longer follow the target model's distribution.
    """

    method: str | None = None
    draft_tokens: int | None = None
    draft_model: str | None = None
    forced: bool | None = None
    forced_acceptance_length: float | None = None
    lossy: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfiguration:
    """What decides about a server's speed; None for what it does not tell.

    `speculates` says whether it is set up for drafts at all. `max_num_seqs` requests and `max_num_batched_tokens`
    tokens are the most in one step, `max_model_len` the longest context in tokens. The cache is `kv_blocks` of
    `kv_block_tokens` each. Dtype, quantization, attention backend, graph mode and runner are in the server's own words.
    """

    speculates: bool | None = None
    prefix_caching: bool | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    tensor_parallel: int | None = None
    kv_blocks: int | None = None
    kv_block_tokens: int | None = None
    attention_backend: str | None = None
    cuda_graph_mode: str | None = None
    async_scheduling: bool | None = None
    runner: str | None = None
