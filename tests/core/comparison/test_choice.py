"""Tables of draft lengths, one for all arms that differ in draft length alone."""

from collections.abc import Sequence
from typing import Any

from loadgen.core.comparison.choice import Drafting, schedules
from tests.core.comparison.gains import gains

LEVELS = (1.0, 4.0, 16.0, 64.0)


def drafting(
    label: str,
    draft_tokens: int,
    *speedups: float | None,
    configuration: dict[str, Any] | None = None,
    levels: Sequence[float] = LEVELS,
) -> Drafting:
    return Drafting(
        label=label,
        method="ngram",
        draft_tokens=draft_tokens,
        configuration=configuration or {},
        levels=levels,
        gains=gains(*speedups, levels=levels),
    )


def test_arms_that_differ_in_draft_length_alone_share_a_table() -> None:
    """It names them, and has what else they were told."""
    same = {"prompt_lookup_max": 7}
    two, five = (drafting(f"k = {k}", k, 1.5, 1.4, 1.3, 0.9, configuration=same) for k in (2, 5))
    (found,) = schedules(LEVELS, [two, five])
    assert (found.method, found.arms, found.configuration) == ("ngram", ("k = 2", "k = 5"), same)


def test_arms_that_differ_otherwise_have_tables_of_their_own() -> None:
    """One method, one draft length, two ways to look up: neither takes the other's place."""
    first, second = (
        drafting(f"up to {most}", 3, 1.5, 1.4, last, 0.9, configuration={"prompt_lookup_max": most})
        for most, last in ((3, 1.2), (7, 0.8))
    )
    found = schedules(LEVELS, [first, second])
    assert [each.arms for each in found] == [("up to 3",), ("up to 7",)]
    assert [each.draft_tokens_by_batch for each in found] == [((1, 32, 3), (33, 64, 0)), ((1, 8, 3), (9, 64, 0))]


def test_a_level_that_was_never_run_has_no_entry() -> None:
    """Neither above the last one that was, where it would read as a finding, nor between two."""
    (short,) = schedules(LEVELS, [drafting("a", 3, 1.5, 1.4, levels=(1.0, 4.0))])
    assert (short.draft_tokens_by_batch, short.not_run) == (((1, 4, 3),), (16, 64))
    assert [each.level for each in short.lengths] == [1, 4]
    (gap,) = schedules(LEVELS, [drafting("a", 3, 1.5, 1.4, levels=(1.0, 64.0))])
    assert (gap.draft_tokens_by_batch, gap.not_run) == (((1, 64, 3),), (4, 16))


def test_a_level_without_enough_requests_was_run_all_the_same() -> None:
    """It shows nothing, which is what its entry says it rests on."""
    (found,) = schedules(LEVELS, [drafting("a", 3, None, 1.4, 1.3, 0.9)])
    assert found.not_run == ()
    assert found.draft_tokens_by_batch == ((1, 2, 0), (3, 32, 3), (33, 64, 0))


def test_an_arm_that_was_never_run_has_no_table() -> None:
    """There is nothing to paste."""
    assert schedules(LEVELS, [drafting("a", 3, levels=())]) == ()
