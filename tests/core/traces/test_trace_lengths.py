"""Length distributions and synthetic requests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.errors import ConfigError
from loadgen.core.request import Text, TokenIds
from loadgen.core.traces.lengths import FixedLength, NormalLength, UniformLength, parse_length
from loadgen.core.traces.source import cycle
from loadgen.core.traces.synthetic import SyntheticSource
from loadgen.core.traces.texts import InventedText, InventedTokenIds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("128", FixedLength(tokens=128)),
        (128, FixedLength(tokens=128)),
        (" 128:32 ", NormalLength(mean=128, sd=32)),
        ("128.5:0", NormalLength(mean=128.5, sd=0)),
        ("64-256", UniformLength(low=64, high=256)),
        ("7-7", UniformLength(low=7, high=7)),
    ],
)
def test_three_forms_are_read(text: str | int, expected: object) -> None:
    """A number, mean and deviation, from and to."""
    parsed = parse_length(text)
    assert parsed == expected
    assert parse_length(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text", ["", "x", "0", "-5", "1.5", "5:", ":5", "0:5", "5-", "9-5", "0-5", "1e3", "3000000000", "128,64"]
)
def test_other_forms_are_refused_with_what_was_expected(text: str) -> None:
    """The message shows the forms or the bounds, and the text."""
    with pytest.raises(ValueError, match="expected") as caught:
        parse_length(text)
    assert repr(text) in str(caught.value)


@given(st.integers(1, 1_000), st.integers(0, 1_000), st.integers(0, 2**32))
def test_draws_stay_in_bounds_and_follow_the_seed(low: int, width: int, seed: int) -> None:
    """Uniform within both ends, normal at least 1, fixed fixed; the same seed draws the same."""
    for lengths in (
        UniformLength(low=low, high=low + width),
        NormalLength(mean=low, sd=width),
        FixedLength(tokens=low),
    ):
        drawn = lengths.draw(np.random.default_rng(seed), 50)
        assert len(drawn) == 50
        assert drawn.min() >= 1
        assert (drawn == lengths.draw(np.random.default_rng(seed), 50)).all()
        if isinstance(lengths, UniformLength):
            assert low <= drawn.min() <= drawn.max() <= low + width
        if isinstance(lengths, FixedLength):
            assert set(drawn.tolist()) == {low}


def test_draws_have_the_mean_and_deviation_asked_for() -> None:
    """`1000:100` is what it says, not 0.9 of it."""
    drawn = NormalLength(mean=1_000, sd=100).draw(np.random.default_rng(1), 20_000)
    assert drawn.mean() == pytest.approx(1_000, abs=3)
    assert drawn.std() == pytest.approx(100, abs=3)
    uniform = UniformLength(low=10, high=30).draw(np.random.default_rng(1), 20_000)
    assert uniform.mean() == pytest.approx(20, abs=0.2)
    assert {10, 30} <= set(uniform.tolist())


def source(count: int = 50, seed: int = 1, shared: int = 0, lengths: str = "100:20") -> SyntheticSource:
    return SyntheticSource(
        input_tokens=parse_length(lengths),
        output_tokens=parse_length("5-9"),
        count=count,
        seed=seed,
        texts=InventedTokenIds(seed=seed, low=0, high=50_000),
        shared_prefix_tokens=shared,
    )


def ids(source: SyntheticSource, pass_number: int = 0) -> list[tuple[int, ...]]:
    prompts = [one.turns[0].prompt for one in source.conversations(pass_number=pass_number)]
    return [prompt.ids for prompt in prompts if isinstance(prompt, TokenIds)]


def test_facts_tell_the_lengths_that_were_drawn() -> None:
    """Means and totals are those of the requests, beside what was asked for."""
    data = source()
    lengths = [(one.turns[0].input_tokens, one.turns[0].output_tokens) for one in data.conversations()]
    facts = data.facts
    assert (facts.rows, facts.used, facts.requests, facts.sessions) == (50, 50, 50, 0)
    assert facts.input_tokens == sum(a or 0 for a, _ in lengths)
    assert facts.output_tokens == sum(b or 0 for _, b in lengths)
    assert facts.input_lengths is not None
    assert any("100:20" in note and f"{facts.input_lengths.mean:.1f}" in note for note in facts.notes)
    assert (facts.text, facts.span_s) == ("invented", None)


def test_synthetic_requests_are_the_same_for_a_seed_and_unique() -> None:
    """Iterated twice they are equal; within a run and over passes no two begin alike; another seed is another set."""
    data = source()
    assert ids(data) == ids(data) == ids(source())
    beginnings = {prompt[:16] for number in range(3) for prompt in ids(data, number)}
    assert len(beginnings) == 150
    assert not beginnings & {prompt[:16] for prompt in ids(source(seed=2))}


def test_a_pass_repeats_lengths_not_prompts() -> None:
    """Facts hold for every pass."""
    data = source()
    assert [len(prompt) for prompt in ids(data, 1)] == [len(prompt) for prompt in ids(data)]


def test_a_shared_prefix_is_shared_by_all_requests_of_all_passes() -> None:
    """Exactly so many tokens, then each goes its own way; a shorter prompt is the beginning of the prefix."""
    data = source(shared=32, lengths="20-80")
    prompts = [*ids(data), *ids(data, 1)]
    prefix = max(prompts, key=len)[:32]
    assert all(prompt[:32] == prefix[: len(prompt)] for prompt in prompts)
    rest = [prompt[32:40] for prompt in prompts if len(prompt) >= 40]
    assert len(set(rest)) == len(rest)
    assert len({prompt[32] for prompt in prompts if len(prompt) >= 40}) > 1


def test_a_source_needs_a_request() -> None:
    """Zero requests are refused."""
    with pytest.raises(ConfigError, match="at least 1"):
        source(count=0)


def test_cycling_goes_on_with_new_prompts() -> None:
    """Each conversation comes with the number of its pass."""
    texts = InventedText(seed=1)
    data = SyntheticSource(
        input_tokens=FixedLength(tokens=20), output_tokens=FixedLength(tokens=1), count=3, seed=1, texts=texts
    )
    taken = [pair for pair, _ in zip(cycle(data, first_pass=4), range(7), strict=False)]
    assert [number for number, _ in taken] == [4, 4, 4, 5, 5, 5, 6]
    assert len({one.turns[0].prompt for _, one in taken if isinstance(one.turns[0].prompt, Text)}) == 7
