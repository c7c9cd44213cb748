"""Whether arms made answers of the same length: beyond what matters, and beyond chance."""

import numpy as np
import pytest

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.lengths import LENGTHS_MATTER_RATIO, lengths_apart
from tests.core.comparison.factory import Floats, World, experiment, with_column

ERROR_RATIO = 0.01


def sides(tokens: list[Floats], arm: list[Floats]) -> tuple[list[Cell], list[Cell]]:
    """Cells of both sides with those output tokens, a repeat each."""
    made = experiment(World(), np.random.default_rng(0), repeats=len(tokens), requests=len(tokens[0]))
    lent = ((of_side, told) for of_side, told in zip(made, (tokens, arm), strict=True))
    first, second = (
        [with_column(cell, "output_tokens", each) for cell, each in zip(of_side, told, strict=True)]
        for of_side, told in lent
    )
    return first, second


def natural(rng: np.random.Generator, requests: int, factor: float = 1.0) -> Floats:
    """Answers that end where the model ends them, drawn anew each time: most are short, a few are very long."""
    return np.ceil(rng.lognormal(4.0, 1.0, requests) * factor)


def test_lengths_that_differ_by_chance_are_the_same_work() -> None:
    """Sampled answers of 40 requests have means that are often a tenth apart: that is hardly ever said of the arm."""
    rng = np.random.default_rng(1)
    said = large = 0
    for _ in range(400):
        tokens, arm = [natural(rng, 40) for _ in range(2)], [natural(rng, 40) for _ in range(2)]
        large += abs(np.mean(arm) / np.mean(tokens) - 1) > LENGTHS_MATTER_RATIO
        said += lengths_apart(*sides(tokens, arm), error_ratio=ERROR_RATIO) is not None
    assert large > 200
    assert said / 400 <= 2 * ERROR_RATIO


def test_lengths_that_really_differ_are_found() -> None:
    """A third longer in every draw of 200 requests, and both means are told."""
    rng = np.random.default_rng(2)
    found = lengths_apart(*sides([natural(rng, 200)] * 2, [natural(rng, 200, 1.6)] * 2), error_ratio=ERROR_RATIO)
    assert found is not None
    assert found.arm / found.baseline == pytest.approx(1.6, rel=0.3)


def test_what_is_certain_and_small_does_not_matter() -> None:
    """One token more in each of a hundred answers of 100 is forgiven, three are not; nor is it a matter of sign."""
    tokens = np.full(100, 100.0)
    for more, apart in ((1, False), (2, False), (3, True), (-3, True)):
        found = lengths_apart(*sides([tokens], [tokens + more]), error_ratio=ERROR_RATIO)
        assert (found is not None) == apart
    assert str(found) == "answers have 97.0 tokens on average, those of the baseline 100.0"


def test_repeats_of_a_request_are_one_piece_of_evidence() -> None:
    """Eight repeats of the same three pairs say no more than one of them."""
    tokens, arm = np.array([100.0, 100.0, 100.0]), np.array([100.0, 101.0, 160.0])
    for repeats in (1, 8):
        assert lengths_apart(*sides([tokens] * repeats, [arm] * repeats), error_ratio=0.05) is None


def test_only_requests_that_every_run_completed_count() -> None:
    """One that failed in a run is in none; of a single one left nothing is said."""
    tokens = np.full(4, 50.0)
    failed = np.array([np.nan, 90.0, 90.0, 90.0])
    found = lengths_apart(*sides([tokens, tokens], [tokens * 1.8, failed]), error_ratio=ERROR_RATIO)
    assert found is not None
    assert (found.baseline, found.arm) == (50.0, 90.0)
    alone = np.array([np.nan, np.nan, np.nan, 90.0])
    assert lengths_apart(*sides([tokens], [alone]), error_ratio=ERROR_RATIO) is None
