"""A speculative method as the engine sees it: what it proposes, what is accepted of it and what it costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.simulation.step_time import Drafting
from loadgen.core.simulation.survival import Survival

BatchRange = tuple[int, int, int]
"""First batch size, last batch size, draft tokens: vLLM's `num_speculative_tokens_per_batch_size`, bounds included."""


class Method(StrEnum):
    """Where draft tokens come from; the values are the names that options and engines use."""

    NGRAM = "ngram"
    DRAFT_MODEL = "draft_model"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    MTP = "mtp"
    SUFFIX = "suffix"

    @property
    def looks_up_text(self) -> bool:
        """Whether drafts are found in earlier text, so that a step may find none."""
        return self in (Method.NGRAM, Method.SUFFIX)

    @property
    def reads_hidden_states(self) -> bool:
        """Whether the drafter needs the target's states of the last cached block, which is then computed again."""
        return self in (Method.EAGLE, Method.EAGLE3, Method.MTP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculator:
    """One method with its settings.

    `survival` speaks of steps that drafted, `coverage_ratio` is their share of all steps. `by_batch_size` sets the
    draft length by the number of requests decoding; without it `draft_tokens` always holds. When drafting starts again
    after steps without it, `switch_s` and `catch_up_token_s` for each token generated meanwhile are added once.
    `weight_bytes` and `kv_bytes_per_token` are what the drafter takes of the GPU's memory. Raises ValueError for
    settings that contradict each other.
    """

    method: Method
    draft_tokens: int
    survival: Survival
    drafting: Drafting
    coverage_ratio: float = 1.0
    weight_bytes: float = 0.0
    kv_bytes_per_token: int = 0
    by_batch_size: tuple[BatchRange, ...] = ()
    switch_s: float = 0.0
    catch_up_token_s: float = 0.0

    def __post_init__(self) -> None:
        if self.draft_tokens < 1:
            raise ValueError(f"expected at least 1 draft token, got {self.draft_tokens}")
        if not 0 < self.coverage_ratio <= 1:
            raise ValueError(f"expected a coverage above 0 and up to 1, got {self.coverage_ratio:g}")
        check_ranges(self.by_batch_size, self.draft_tokens)

    def draft_tokens_at(self, batch: int) -> int:
        """Draft tokens for each request when `batch` of them decode; beyond the last range its length holds."""
        for _, last, tokens in self.by_batch_size:
            if batch <= last:
                return tokens
        return self.by_batch_size[-1][2] if self.by_batch_size else self.draft_tokens

    def tokens_per_step(self, draft_tokens: int) -> float:
        """Mean tokens a step over all steps, those that drafted nothing included."""
        return 1 + self.coverage_ratio * (self.survival.pooled_length(draft_tokens) - 1)


def as_ranges(draft_tokens: Sequence[int]) -> tuple[BatchRange, ...]:
    """The draft lengths of batch sizes 1, 2, 3 ... as ranges of equal ones."""
    ranges: list[BatchRange] = []
    for batch, tokens in enumerate(draft_tokens, 1):
        if ranges and ranges[-1][2] == tokens:
            ranges[-1] = (ranges[-1][0], batch, tokens)
        else:
            ranges.append((batch, batch, tokens))
    return tuple(ranges)


def check_ranges(ranges: Sequence[BatchRange], most: int) -> None:
    """Raises ValueError unless the ranges begin at 1, follow one another without a gap and draft 0 to `most` tokens."""
    due = 1
    for first, last, tokens in ranges:
        if first != due or last < first:
            raise ValueError(f"expected ranges of batch sizes without a gap from 1 on, got {first} to {last} at {due}")
        if not 0 <= tokens <= most:
            raise ValueError(f"expected 0 to {most} draft tokens for batch sizes {first} to {last}, got {tokens}")
        due = last + 1
