"""What an engine is given: its limits, and requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the engine's memory and scheduler allow.

    `kv_blocks` blocks of `block_tokens`; at most `max_sequences` requests at once and `token_budget` tokens a step.
    Steps of more than `graph_tokens` tokens run without a captured graph and take `graph_miss_s` longer.
    """

    kv_blocks: int
    block_tokens: int = 16
    max_sequences: int = 256
    token_budget: int = 8192
    prefix_caching: bool = True
    graph_tokens: int | None = None
    graph_miss_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request: its lengths in tokens, under a key of the caller's.

    `blocks` names the content of its leading full blocks, prompt first and, as far as the caller knows it, the output
    after it; equal names mean equal text from the start.
    """

    key: int
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()
