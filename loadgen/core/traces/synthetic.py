"""Requests without a file: drawn lengths, invented prompts."""

from collections.abc import Iterator

import numpy as np

from loadgen.core.errors import ConfigError
from loadgen.core.request import Conversation, Prompt, Turn
from loadgen.core.traces.facts import TraceFacts, facts_of
from loadgen.core.traces.lengths import LengthDistribution
from loadgen.core.traces.table import Table
from loadgen.core.traces.texts import Texts

_SHARED = -1
"""The block that all prompts begin with; the others are numbered from 0."""


class SyntheticSource:
    """`count` single requests without times. Lengths are drawn once by `seed`; each pass has new prompts for them.

    With `shared_prefix_tokens` the first so many tokens of the input are the same in all prompts of all passes.
    """

    def __init__(
        self,
        *,
        input_tokens: LengthDistribution,
        output_tokens: LengthDistribution,
        count: int,
        seed: int,
        texts: Texts,
        shared_prefix_tokens: int = 0,
    ) -> None:
        """Raises ConfigError for a count below 1."""
        if count < 1:
            raise ConfigError(f"number of requests: expected at least 1, got {count}")
        random = np.random.Generator(np.random.PCG64(seed))
        self._inputs = input_tokens.draw(random, count)
        self._outputs = output_tokens.draw(random, count)
        self._texts, self._shared, self._count = texts, shared_prefix_tokens, count
        nothing = np.zeros(count, dtype=np.int64)
        table = Table(
            line=nothing,
            position=nothing,
            size_bytes=nothing,
            time_ns=None,
            input_tokens=self._inputs,
            output_tokens=self._outputs,
            characters=nothing - 1,
            requests=nothing + 1,
            has_text=nothing.astype(np.bool_),
            is_session=nothing.astype(np.bool_),
            order=np.arange(count),
            starts=np.arange(count + 1),
        )
        asked = f"asked for {input_tokens} input and {output_tokens} output tokens"
        got = f"drawn with a mean of {self._inputs.mean():.1f} and {self._outputs.mean():.1f}"
        shared = (f"all prompts share their first {shared_prefix_tokens} tokens",) if shared_prefix_tokens else ()
        self._facts = facts_of(
            table,
            name="synthetic",
            format="synthetic",
            rows=count,
            dropped={},
            borrows=texts.kind == "borrowed",
            notes=(f"{asked}, {got}", *shared, texts.note),
        )

    @property
    def facts(self) -> TraceFacts:
        """The lengths as drawn."""
        return self._facts

    def conversations(self, *, pass_number: int = 0, unique_repeats: bool = False) -> Iterator[Conversation]:
        """As `Source.conversations`; its prompts are new in every pass."""
        pairs = zip(self._inputs.tolist(), self._outputs.tolist(), strict=True)
        for number, (input_tokens, output_tokens) in enumerate(pairs):
            prompt = self._prompt(pass_number * self._count + number, input_tokens)
            turn = Turn(prompt=prompt, input_tokens=input_tokens, output_tokens=output_tokens)
            yield Conversation(turns=(turn,))

    def _prompt(self, number: int, tokens: int) -> Prompt:
        if not self._shared:
            return self._texts.prompt(stream=number, pass_number=0, tokens=tokens)
        blocks = (_SHARED,) if tokens <= self._shared else (_SHARED, number)
        return self._texts.prompt(stream=number, pass_number=0, tokens=tokens, blocks=blocks, block_tokens=self._shared)
