"""Invented and borrowed prompts."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.errors import ConfigError, DataError
from loadgen.core.request import Body, Conversation, Messages, Prompt, Text, TokenIds, Turn
from loadgen.core.traces.texts import (
    WORDS_PER_TOKEN,
    BorrowedText,
    InventedText,
    InventedTokenIds,
    Texts,
    marked,
)
from loadgen.core.traces.words import POOL_WORDS, WORDS, text_pool

FIRST_BLOCK_WORDS = int(16 * WORDS_PER_TOKEN)


def made(
    texts: Texts,
    stream: int,
    tokens: int,
    *,
    pass_number: int = 0,
    blocks: Sequence[int] = (),
    block: int | None = None,
) -> Prompt:
    return texts.prompt(stream=stream, pass_number=pass_number, tokens=tokens, blocks=blocks, block_tokens=block)


def words(prompt: Prompt) -> list[str]:
    assert isinstance(prompt, Text)
    return prompt.text.split(" ")


def ids(prompt: Prompt) -> tuple[int, ...]:
    assert isinstance(prompt, TokenIds)
    return prompt.ids


def first_blocks(seed: int, *, pass_number: int = 0, n: int = 2_000) -> set[tuple[str, ...]]:
    texts = InventedText(seed=seed)
    return {tuple(words(made(texts, i, 64, pass_number=pass_number))[:FIRST_BLOCK_WORDS]) for i in range(n)}


def test_no_two_prompts_of_a_run_share_their_first_block() -> None:
    """2,000 requests have 2,000 beginnings."""
    assert len(first_blocks(1)) == 2_000


def test_another_seed_or_pass_shares_no_first_block() -> None:
    """A server's prefix cache of one run or pass has nothing for the next."""
    assert not first_blocks(1) & first_blocks(2)
    assert not first_blocks(1) & first_blocks(1, pass_number=1)


def test_prompts_differ_from_the_first_word_on() -> None:
    """First words are spread over the whole list, not counted up behind a common beginning."""
    texts = InventedText(seed=1)
    assert len({words(made(texts, i, 64))[0] for i in range(2_000)}) > len(WORDS) // 2


def test_the_same_seed_gives_the_same_prompts() -> None:
    """Seed, pass and stream decide, nothing else."""
    assert made(InventedText(seed=7), 3, 100) == made(InventedText(seed=7), 3, 100)
    assert made(InventedTokenIds(seed=7, low=10, high=999), 3, 100) == made(
        InventedTokenIds(seed=7, low=10, high=999), 3, 100
    )


@given(st.integers(0, 2**63), st.integers(0, 10**6), st.integers(1, 2_000), st.integers(0, 500))
def test_a_longer_prompt_of_a_stream_goes_on_where_the_shorter_ends(
    seed: int, stream: int, tokens: int, more: int
) -> None:
    """Turns of one conversation share their beginning, in text and in token numbers."""
    text = InventedText(seed=seed)
    short, long = words(made(text, stream, tokens)), words(made(text, stream, tokens + more))
    assert long[: len(short)] == short
    numbers = InventedTokenIds(seed=seed, low=100, high=30_000)
    few, many = ids(made(numbers, stream, tokens)), ids(made(numbers, stream, tokens + more))
    assert (len(few), len(many), many[:tokens]) == (tokens, tokens + more, few)


@pytest.mark.parametrize("tokens", [1, 16, 200, 5_000])
def test_lengths_of_text_follow_the_ratio_on_average(tokens: int) -> None:
    """Over many prompts the mean number of words is the ratio times the tokens; at least one word each."""
    texts = InventedText(seed=4, words_per_token=0.75)
    counts = [len(words(made(texts, i, tokens))) for i in range(1_000)]
    assert min(counts) >= 1
    assert max(counts) - min(counts) <= 1
    assert sum(counts) / 1_000 == pytest.approx(max(1, 0.75 * tokens), abs=0.06)


def test_text_longer_than_the_pool_goes_round() -> None:
    """The longest contexts need no second pool."""
    tokens = int(2.5 * POOL_WORDS)
    assert len(words(made(InventedText(seed=1, words_per_token=1), 0, tokens))) == pytest.approx(tokens, abs=1)
    assert len(ids(made(InventedTokenIds(seed=1, low=0, high=50), 0, tokens))) == tokens


@given(st.integers(0, POOL_WORDS - 1), st.integers(1, 3 * POOL_WORDS))
def test_cuts_of_the_pool_have_their_words(first: int, count: int) -> None:
    """Any cut has exactly that many words, also round the end."""
    pool = text_pool()
    assert pool.words == POOL_WORDS
    assert pool.cut(first, count).count(" ") == count - 1


def test_text_is_plain_and_readable() -> None:
    """ASCII words and full stops: nothing that JSON escapes."""
    text = text_pool().text
    assert text.isascii()
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ. ")
    assert len(set(WORDS)) == len(WORDS) > 256


ROWS = [((0, 1, 2), 1_500), ((0, 1, 3), 1_400), ((0, 4), 1_000), ((5,), 512), ((0,), 300)]


@pytest.mark.parametrize("texts", [InventedText(seed=9), InventedTokenIds(seed=9, low=0, high=9_999)])
def test_equal_blocks_give_equal_content_and_others_none(texts: Texts) -> None:
    """Prompts share exactly the blocks they shared when recorded, whichever request carries them."""
    prompts = [made(texts, n, tokens, blocks=blocks, block=512) for n, (blocks, tokens) in enumerate(ROWS)]
    parts = [list(p.ids) if isinstance(p, TokenIds) else words(p) for p in prompts]

    def shared(a: list[object], b: list[object]) -> int:
        return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

    assert shared(parts[0], parts[1]) >= 2 * 512 * WORDS_PER_TOKEN - 2
    assert shared(parts[0], parts[1]) < 2 * 512 + 2
    assert 512 * WORDS_PER_TOKEN - 2 <= shared(parts[0], parts[2]) < 512 + 2
    assert shared(parts[0], parts[3]) <= 1
    assert shared(parts[0], parts[4]) == len(parts[4])
    if isinstance(texts, InventedTokenIds):
        assert [len(part) for part in parts] == [tokens for _, tokens in ROWS]
        assert (shared(parts[0], parts[1]), shared(parts[0], parts[2])) == (1_024, 512)


def test_many_short_blocks_keep_the_length() -> None:
    """Rounding of 16-token blocks does not add up."""
    texts = InventedText(seed=2)
    count = len(words(made(texts, 0, 16_000, blocks=range(1_000), block=16)))
    assert count == pytest.approx(16_000 * WORDS_PER_TOKEN, rel=0.02)


def test_blocks_of_another_seed_or_pass_are_others() -> None:
    """Shared prefixes are shared within a pass only."""
    seen = {tuple(words(made(InventedText(seed=s), 0, 512, blocks=(0,), block=512))[:10]) for s in range(20)}
    again = tuple(words(made(InventedText(seed=0), 0, 512, pass_number=1, blocks=(0,), block=512))[:10])
    assert len(seen) == 20
    assert again not in seen


@pytest.mark.parametrize(("low", "high"), [(5, 5), (5, 6), (-1, 9), (9, 5)])
def test_a_range_of_token_numbers_needs_two(low: int, high: int) -> None:
    """An empty range is refused."""
    with pytest.raises(ConfigError, match="token numbers"):
        InventedTokenIds(seed=0, low=low, high=high)


def test_token_numbers_stay_in_range() -> None:
    """low and below high."""
    got = [n for i in range(50) for n in ids(made(InventedTokenIds(seed=0, low=1_000, high=1_010), i, 200))]
    assert (min(got), max(got)) == (1_000, 1_009)


@pytest.mark.parametrize("ratio", [0, -1, float("nan")])
def test_a_ratio_must_be_above_zero(ratio: float) -> None:
    """Words per token."""
    with pytest.raises(ConfigError, match="words per token"):
        InventedText(seed=0, words_per_token=ratio)


def prompts(*lengths: int) -> list[Conversation]:
    return [Conversation(turns=(Turn(prompt=Text(text=f"p{n}"), input_tokens=n),)) for n in lengths]


@pytest.mark.parametrize(("asked", "expected"), [(1, "p10"), (10, "p10"), (54, "p10"), (56, "p100"), (5_000, "p1000")])
def test_borrowed_prompts_are_the_nearest_in_length(asked: int, expected: str) -> None:
    """A length that is not there gets the nearest."""
    assert made(BorrowedText(prompts(1_000, 10, 100), seed=0), 0, asked) == Text(text=expected)


def test_borrowed_prompts_of_about_the_length_take_turns() -> None:
    """Within 10 % all are used; which one follows from seed and stream."""
    borrowed = BorrowedText(prompts(95, 100, 105, 300), seed=1)
    assert {words(made(borrowed, i, 100))[0] for i in range(100)} == {"p95", "p100", "p105"}
    assert [made(borrowed, i, 100) for i in range(9)] == [
        made(BorrowedText(prompts(95, 100, 105, 300), seed=1), i, 100) for i in range(9)
    ]


def test_borrowed_lengths_are_estimated_from_characters() -> None:
    """Where the prompts file tells no tokens, four characters are one."""
    borrowed = BorrowedText([Conversation(turns=(Turn(prompt=Text(text="x" * 400)),))], seed=0)
    assert borrowed.lengths == (100,)
    assert "estimated at 4 characters" in borrowed.note


def test_borrowed_prompts_can_be_made_unique() -> None:
    """A number in front tells every use apart; without it repeats are said in the note."""
    borrowed = BorrowedText(prompts(100), seed=1, unique=True)
    assert len({made(borrowed, i, 100) for i in range(50)}) == 50
    assert "prefix cache" not in borrowed.note
    assert "prefix cache" in BorrowedText(prompts(100), seed=1).note


def test_how_well_borrowed_lengths_fit() -> None:
    """The share of the asked tokens that the nearest prompts hold."""
    assert BorrowedText(prompts(10, 100), seed=0).fit_ratio(np.array([100, 100, 1_000, 10])) == 310 / 1_210


def test_nothing_to_borrow_is_an_error() -> None:
    """An empty prompts file."""
    with pytest.raises(DataError, match="no prompt"):
        BorrowedText([], seed=0)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        (Text(text="\nabc"), Text(text="[2] \nabc")),
        (
            Messages(messages=({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})),
            Messages(messages=({"role": "user", "content": "[2] a"}, {"role": "assistant", "content": "b"})),
        ),
        (
            Messages(messages=({"role": "user", "content": [{"type": "text", "text": "a"}]},)),
            Messages(
                messages=(
                    {"role": "user", "content": [{"type": "text", "text": "[2] "}, {"type": "text", "text": "a"}]},
                )
            ),
        ),
        (TokenIds(ids=(1, 2, 3)), TokenIds(ids=(3, 1, 2))),
        (Body(body={"prompt": "a", "n": 1}), Body(body={"prompt": "[2] a", "n": 1})),
        (
            Body(body={"messages": [{"role": "user", "content": "a"}]}),
            Body(body={"messages": [{"role": "user", "content": "[2] a"}]}),
        ),
        (Body(body={"prompt": [1, 2]}), Body(body={"prompt": [1, 2]})),
    ],
)
def test_a_mark_changes_the_beginning(prompt: Prompt, expected: Prompt) -> None:
    """Text gets a number in front, token numbers are rotated; the original is left alone."""
    assert marked(prompt, 2) == expected
