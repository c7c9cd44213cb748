"""Prompts for rows that tell lengths only.

Three ways: invented text of about the asked length, invented token numbers of exactly that length, or real prompts of a
similar length from a prompts file. Invented prompts differ from their first words on, in a run and between runs with
different seeds, so that none finds another's prefix in a server's cache; rows of one conversation and equal prefix
blocks share exactly what they shared when they were recorded.

What a model answers to invented text, and how much of it a drafter predicts, says nothing about real traffic.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, Protocol

import numpy as np

from loadgen.core.errors import ConfigError, DataError
from loadgen.core.request import Body, Conversation, JsonObject, Messages, Prompt, Text, TokenIds
from loadgen.core.traces.table import Ints, prompt_characters
from loadgen.core.traces.words import WORDS, text_pool

WORDS_PER_TOKEN = 0.91
"""Words of our invented text per token: an estimate, see docs/traces.md."""

CHARACTERS_PER_TOKEN = 4.0
"""Characters of English prose per token: an estimate, used to compare real prompts with a number of tokens."""

TextKind = Literal["real", "invented", "borrowed"]
"""Where prompts come from: the data itself, a generator of ours, or another file than the one with the lengths."""

_BITS = 2**64
_POOL_IDS = 2**18


class Texts(Protocol):
    """Makes the prompt of a row that has none."""

    @property
    def kind(self) -> TextKind:
        """`invented` or `borrowed`."""
        ...

    @property
    def note(self) -> str:
        """What a reader of the results must know about these prompts."""
        ...

    def prompt(
        self,
        *,
        stream: int,
        pass_number: int,
        tokens: int,
        blocks: Sequence[int] = (),
        block_tokens: int | None = None,
    ) -> Prompt:
        """A prompt of `tokens` tokens.

        Prompts of one `stream` (a conversation's number) in one pass over the data begin alike: the shorter is the
        beginning of the longer. With `blocks` the prompt consists of these instead, equal numbers giving equal content.
        """
        ...


class InventedText:
    """Readable text of about the asked length, by a ratio of words to tokens."""

    kind: TextKind = "invented"

    def __init__(self, *, seed: int, words_per_token: float = WORDS_PER_TOKEN) -> None:
        """Raises ConfigError for a ratio that is not above zero."""
        if not 0 < words_per_token < 100:
            raise ConfigError(f"words per token: expected a number above 0, got {words_per_token!r}")
        self._seed, self._ratio, self._pool = seed, words_per_token, text_pool()
        self.note = f"invented text: input lengths are estimates at {words_per_token:g} words a token"

    def prompt(
        self,
        *,
        stream: int,
        pass_number: int,
        tokens: int,
        blocks: Sequence[int] = (),
        block_tokens: int | None = None,
    ) -> Text:
        """As `Texts.prompt`; at least one word."""
        if block_tokens is None:
            return Text(text=self._text(_key(self._seed, pass_number, "stream", stream), tokens))
        sizes = _block_sizes(tokens, len(blocks), block_tokens)
        pieces = (
            self._text(_key(self._seed, pass_number, "block", block), size)
            for block, size in zip(blocks, sizes, strict=True)
        )
        return Text(text=" ".join(pieces))

    def _text(self, key: int, tokens: int) -> str:
        # The fraction that is rounded away is drawn for each text, so that many short pieces keep the ratio.
        count = max(1, int(tokens * self._ratio + (key >> 11) / 2**53))
        opening: list[str] = []
        rest = key
        while rest and len(opening) < count:
            rest, digit = divmod(rest, len(WORDS))
            opening.append(WORDS[digit])
        left = count - len(opening)
        if left:
            opening.append(self._pool.cut(key % self._pool.words, left))
        return " ".join(opening)


class InventedTokenIds:
    """Token numbers of exactly the asked length, drawn from [`low`, `high`): for `/v1/completions`."""

    kind: TextKind = "invented"
    note = "invented token numbers: input lengths are exact"

    def __init__(self, *, seed: int, low: int, high: int) -> None:
        """Raises ConfigError for an empty range."""
        if not 0 <= low < high - 1:
            raise ConfigError(f"token numbers: expected a range of at least two from 0, got {low} to {high}")
        self._seed, self._low, self._span = seed, low, high - low
        self._pool = _id_pool(low, high)

    def prompt(
        self,
        *,
        stream: int,
        pass_number: int,
        tokens: int,
        blocks: Sequence[int] = (),
        block_tokens: int | None = None,
    ) -> TokenIds:
        """As `Texts.prompt`, exact."""
        if block_tokens is None:
            return TokenIds(ids=tuple(self._ids(_key(self._seed, pass_number, "stream", stream), tokens)))
        ids: list[int] = []
        for block, size in zip(blocks, _block_sizes(tokens, len(blocks), block_tokens), strict=True):
            ids += self._ids(_key(self._seed, pass_number, "block", block), size)
        return TokenIds(ids=tuple(ids))

    def _ids(self, key: int, tokens: int) -> list[int]:
        ids: list[int] = []
        rest = key
        while rest and len(ids) < tokens:
            rest, digit = divmod(rest, self._span)
            ids.append(self._low + digit)
        first = key % _POOL_IDS
        while len(ids) < tokens:
            piece = self._pool[first : first + tokens - len(ids)]
            ids += piece.tolist()
            first = (first + len(piece)) % _POOL_IDS
        return ids


class BorrowedText:
    """Real prompts of about the asked length from another file; a length that is not there gets the nearest.

    A prompt serves several rows when there are fewer prompts than rows: a server with a prefix cache then has it ready.
    `unique` puts a number in front of each so that it does not. Prefix blocks and conversations are not rebuilt.
    """

    kind: TextKind = "borrowed"

    def __init__(
        self,
        conversations: Iterable[Conversation],
        *,
        seed: int,
        unique: bool = False,
        characters_per_token: float = CHARACTERS_PER_TOKEN,
    ) -> None:
        """Takes the first turn of each conversation. Raises DataError when there is none."""
        sized = []
        for conversation in conversations:
            turn = conversation.turns[0]
            size = turn.input_tokens
            if size is None:
                size = max(1, round((prompt_characters(turn.prompt) or 0) / characters_per_token))
            sized.append((size, turn.prompt))
        if not sized:
            raise DataError("the prompts file holds no prompt to borrow")
        sized.sort(key=lambda pair: pair[0])
        self.lengths = tuple(size for size, _ in sized)
        self._prompts = tuple(prompt for _, prompt in sized)
        self._seed, self._unique = seed, unique
        self.note = (
            f"prompts by nearest length from a file of {len(sized)} ({self.lengths[0]} to {self.lengths[-1]} tokens, "
            f"estimated at {characters_per_token:g} characters a token where not given)"
            + (
                "; each begins with a number of its own"
                if unique
                else "; a prompt may serve several requests, which a prefix cache then answers faster"
            )
        )

    def nearest(self, tokens: int) -> tuple[int, int]:
        """The range of prompts (by length) to choose from: those within 10 %, else those of the nearest length."""
        low, high = bisect_left(self.lengths, tokens * 0.9), bisect_right(self.lengths, tokens * 1.1)
        if low < high:
            return low, high
        near = [self.lengths[place] for place in (low - 1, low) if 0 <= place < len(self.lengths)]
        length = min(near, key=lambda size: abs(size - tokens))
        return bisect_left(self.lengths, length), bisect_right(self.lengths, length)

    def fit_ratio(self, asked: Ints) -> float:
        """Tokens in the prompts that would be borrowed for these lengths, over the tokens asked for."""
        lengths, counts = np.unique(asked.astype(np.int64), return_counts=True)
        borrowed = 0.0
        for length, count in zip(lengths.tolist(), counts.tolist(), strict=True):
            low, high = self.nearest(length)
            borrowed += count * sum(self.lengths[low:high]) / (high - low)
        return borrowed / float(asked.sum(dtype=np.int64))

    def prompt(
        self,
        *,
        stream: int,
        pass_number: int,
        tokens: int,
        blocks: Sequence[int] = (),
        block_tokens: int | None = None,
    ) -> Prompt:
        """A prompt of about `tokens` tokens; which one of several follows from seed, stream and pass."""
        low, high = self.nearest(tokens)
        key = _key(self._seed, pass_number, "stream", stream)
        prompt = self._prompts[low + key % (high - low)]
        return marked(prompt, key) if self._unique else prompt


def marked(prompt: Prompt, number: int) -> Prompt:
    """The prompt with `[number]` in front of its text, so that it shares no prefix with the unmarked one.

    Token numbers are rotated instead, which keeps their length. A body without text at its start stays as it is.
    """
    mark = f"[{number}] "
    match prompt:
        case Text():
            return Text(text=mark + prompt.text)
        case TokenIds():
            by = number % len(prompt.ids)
            return TokenIds(ids=prompt.ids[by:] + prompt.ids[:by])
        case Messages():
            return Messages(messages=_marked_messages(prompt.messages, mark))
        case Body():
            body = dict(prompt.body)
            for key in ("messages", "prompt", "input"):
                value = body.get(key)
                if isinstance(value, str):
                    body[key] = mark + value
                elif isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
                    body[key] = list(_marked_messages(value, mark))
            return Body(body=body)


def _marked_messages(messages: Sequence[JsonObject], mark: str) -> tuple[JsonObject, ...]:
    first = messages[0]
    content = first.get("content")
    if isinstance(content, str):
        content = mark + content
    elif isinstance(content, list):
        content = [{"type": "text", "text": mark}, *content]
    return ({**first, "content": content}, *messages[1:])


def _block_sizes(tokens: int, blocks: int, block_tokens: int) -> list[int]:
    return [block_tokens] * (blocks - 1) + [tokens - block_tokens * (blocks - 1)]


def _key(seed: int, pass_number: int, what: str, number: int) -> int:
    """64 bits for one prompt: different numbers of one seed, pass and kind never give the same."""
    key = (_base(seed, pass_number, what) + number * 0x9E3779B97F4A7C15) % _BITS
    # The finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection.
    key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9 % _BITS
    key = (key ^ (key >> 27)) * 0x94D049BB133111EB % _BITS
    return key ^ (key >> 31)


@lru_cache(maxsize=64)
def _base(seed: int, pass_number: int, what: str) -> int:
    return int.from_bytes(blake2b(f"{seed}/{pass_number}/{what}".encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=4)
def _id_pool(low: int, high: int) -> "array[int]":
    random = np.random.Generator(np.random.PCG64(20_231_116))
    return array("q", random.integers(low, high, size=_POOL_IDS).tolist())
