"""What an engine tells: each step with what it emitted, and sums over all of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """What one request got of a step. `drafted` is 0 where nothing was proposed; `accepted` counts before the answer's
    end cuts it, as engines do, so it may exceed `tokens` - 1. `prompt_end`: the token came from processing the prompt.
    """

    key: int
    tokens: int
    drafted: int
    accepted: int
    prompt_end: bool
    finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step, from `start_ns` to `end_ns`; what it emitted is there at its end.

    The arrays hold one entry for each request that decoded; `prompt_ends` are the keys of those that emitted the token
    after their prompt. `cached_tokens` are prompt tokens found in the prefix cache, by key of those admitted.
    """

    start_ns: int
    end_ns: int
    tokens: int
    prompt_tokens: int
    draft_tokens: int
    keys: np.ndarray
    emitted: np.ndarray
    drafted: np.ndarray
    accepted: np.ndarray
    prompt_ends: tuple[int, ...]
    finished: tuple[int, ...]
    preempted: tuple[int, ...]
    cached_tokens: dict[int, int]

    def emissions(self) -> Iterator[Emission]:
        """One Emission for each request that got a token."""
        ended = set(self.finished)
        for key in self.prompt_ends:
            yield Emission(key=key, tokens=1, drafted=0, accepted=0, prompt_end=True, finished=key in ended)
        columns = (self.keys.tolist(), self.emitted.tolist(), self.drafted.tolist(), self.accepted.tolist())
        for key, tokens, drafted, accepted in zip(*columns, strict=True):
            yield Emission(
                key=key, tokens=tokens, drafted=drafted, accepted=accepted, prompt_end=False, finished=key in ended
            )


@dataclass(slots=True)
class Counters:
    """Sums since the start, in the sense of vLLM's counters. `histogram[j]` are drafting steps that accepted j tokens.

    `drafts` counts steps of a request that had a draft; `decode_steps` all its steps after the prompt.
    """

    steps: int = 0
    decode_steps: int = 0
    drafts: int = 0
    drafted_tokens: int = 0
    histogram: list[int] = field(default_factory=list)
    output_tokens: int = 0
    prompt_tokens: int = 0
    prefix_query_tokens: int = 0
    prefix_hit_tokens: int = 0
    preemptions: int = 0

    @property
    def accepted_tokens(self) -> int:
        """Draft tokens accepted, before the ends of answers cut them."""
        return sum(accepted * steps for accepted, steps in enumerate(self.histogram))
