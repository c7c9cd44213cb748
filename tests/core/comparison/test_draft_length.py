"""Draft lengths by batch size, from measured ladders."""

import math

from loadgen.core.comparison.draft_length import draft_tokens_by_batch
from loadgen.core.comparison.verdict import Claim, LevelVerdict
from loadgen.core.simulation.speculator import check_ranges
from loadgen.core.stats.bootstrap import Estimate


def ladder(*speedups: float, levels: tuple[float, ...] = (1, 4, 16, 64)) -> list[LevelVerdict]:
    """Verdicts that claim what is above 1.1."""
    return [
        LevelVerdict(
            level=level,
            speedup=Estimate(
                value=value, low=value / 1.1, high=value * 1.1, confidence_ratio=0.95, method="given", n=100
            ),
            claim=Claim.FASTER if value > 1.1 else Claim.NO_DIFFERENCE,
            noise_floor=None,
        )
        for level, value in zip(levels, speedups, strict=True)
    ]


def test_longer_drafts_while_few_are_served_and_none_where_none_pay() -> None:
    """Five tokens at 1 and 4, two at 16, none at 64, each up to halfway in ratio: 8 and 32."""
    ranges = draft_tokens_by_batch({2: ladder(1.5, 1.4, 1.3, 1.05), 5: ladder(2.0, 1.6, 1.2, 0.7)})
    assert ranges == ((1, 8, 5), (9, 32, 2), (33, 64, 0))
    check_ranges(ranges, 5)


def test_of_equal_speedups_the_shorter_draft_is_taken() -> None:
    """It verifies less."""
    assert draft_tokens_by_batch({5: ladder(1.5, 1.5, 1.5, 1.5), 3: ladder(1.5, 1.5, 1.5, 1.5)}) == ((1, 64, 3),)


def test_a_ladder_that_begins_above_one_holds_from_one_on() -> None:
    """vLLM's ranges begin at 1; the lowest level measured is the nearest there is."""
    found = draft_tokens_by_batch({3: ladder(1.5, 0.9, levels=(8, 32))})
    assert found == ((1, math.isqrt(8 * 32), 3), (17, 32, 0))
