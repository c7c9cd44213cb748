"""Draft lengths by batch size, from measured ladders, and what they rest on."""

import math

import pytest

from loadgen.core.comparison.draft_length import Basis, DraftLength, draft_lengths, draft_tokens_by_batch
from loadgen.core.comparison.gain import Gain
from loadgen.core.simulation.speculator import BatchRange, check_ranges
from tests.core.comparison.gains import gain, gains

LEVELS = (1.0, 4.0, 16.0, 64.0)


def lengths(ladders: dict[int, dict[float, Gain]], levels: tuple[float, ...] = LEVELS) -> list[tuple[int, Basis]]:
    return [(each.draft_tokens, each.basis) for each in draft_lengths(levels, ladders)]


def ranges(ladders: dict[int, dict[float, Gain]], levels: tuple[float, ...] = LEVELS) -> tuple[BatchRange, ...]:
    return draft_tokens_by_batch(draft_lengths(levels, ladders))


def test_longer_drafts_while_few_are_served_and_none_where_none_pay() -> None:
    """Five tokens at 1 and 4, two at 16, none at 64, each up to halfway in ratio: 8 and 32."""
    ladders = {2: gains(1.5, 1.4, 1.3, 0.9), 5: gains(2.0, 1.6, 1.2, 0.7)}
    assert ranges(ladders) == ((1, 8, 5), (9, 32, 2), (33, 64, 0))
    check_ranges(ranges(ladders), 5)
    assert [basis for _, basis in lengths(ladders)] == [Basis.PAYS, Basis.PAYS, Basis.PAYS, Basis.COSTS]


def test_of_equal_speedups_the_shorter_draft_is_taken() -> None:
    """It verifies less."""
    assert ranges({5: gains(1.5, 1.5, 1.5, 1.5), 3: gains(1.5, 1.5, 1.5, 1.5)}) == ((1, 64, 3),)


def test_a_ladder_that_begins_above_one_holds_from_one_on() -> None:
    """vLLM's ranges begin at 1; the lowest level measured is the nearest there is."""
    found = ranges({3: gains(1.5, 0.9, levels=(8, 32))}, (8.0, 32.0))
    assert found == ((1, math.isqrt(8 * 32), 3), (17, 32, 0))


def test_nothing_shown_between_levels_that_agree_is_taken_for_the_same() -> None:
    """Both sides pay with three tokens, or both cost."""
    assert lengths({3: gains(1.5, 1.0, 1.3, 0.8)})[1] == (3, Basis.BETWEEN)
    assert lengths({3: gains(1.5, 0.8, None, 0.8)})[2] == (0, Basis.BETWEEN)
    assert lengths({3: gains(1.5, 1.0, None, 1.2)})[1:3] == [(3, Basis.BETWEEN)] * 2


@pytest.mark.parametrize("missing", [1.0, None])
def test_nothing_shown_elsewhere_is_no_finding(missing: float | None) -> None:
    """At an end of the ladder, or between a level that pays and one that costs: none are drafted, as without
    speculation, and it is called what it is."""
    assert lengths({3: gains(1.5, missing, 0.8, 0.7)})[1] == (0, Basis.DEFAULT)
    assert lengths({3: gains(missing, 1.5, 1.2, 0.7)})[0] == (0, Basis.DEFAULT)
    assert lengths({3: gains(1.5, 1.5, 1.2, missing)})[3] == (0, Basis.DEFAULT)
    assert lengths({3: gains(*[missing] * 4)}) == [(0, Basis.DEFAULT)] * 4


def test_levels_that_pay_with_other_lengths_do_not_agree() -> None:
    """Which of the two it would be in between, nobody has shown."""
    assert lengths({2: gains(1.1, 1.0, 1.4, 0.7), 5: gains(1.5, 1.0, 1.2, 0.7)})[1] == (0, Basis.DEFAULT)


def test_no_drafts_are_a_finding_only_where_every_length_costs() -> None:
    """One that costs says nothing of a shorter one of which nothing is known."""
    assert lengths({3: gains(1.5, 1.5, 1.5, 0.8), 5: gains(1.5, 1.5, 1.5, 1.0)})[3] == (0, Basis.DEFAULT)
    assert lengths({3: gains(1.5, 1.5, 1.5, 0.8), 5: gains(1.5, 1.5, 1.5, None)})[3] == (0, Basis.DEFAULT)
    assert lengths({3: gains(1.5, 1.5, 1.5, 0.8), 5: gains(1.5, 1.5, 1.5, 0.9)})[3] == (0, Basis.COSTS)


def test_an_invalid_measurement_shows_nothing() -> None:
    """Neither that it pays nor that it costs."""
    for speedup in (1.5, 0.7):
        ladder = gains(1.4, 1.4, 1.4, speedup) | {64.0: gain(64.0, speedup, valid=False)}
        assert lengths({3: ladder})[3] == (0, Basis.DEFAULT)


def test_a_faster_tpot_that_loses_throughput_is_not_drafted_for() -> None:
    """Drafts cost there, whatever TPOT says; what first tokens lose is a trade-off that one may want."""
    lost = gains(1.5, 1.5, 1.5, 1.3)
    assert lengths({3: lost | {64.0: gain(64.0, 1.3, lost=["output_tokens_per_s"])}})[3] == (0, Basis.COSTS)
    assert lengths({3: lost | {64.0: gain(64.0, 1.3, lost=["ttft_s.mean"])}})[3] == (3, Basis.PAYS)


def test_an_entry_is_of_its_level() -> None:
    """Level, length and basis stand together."""
    assert draft_lengths((8.0,), {3: {8.0: gain(8.0, 1.5)}}) == (
        DraftLength(level=8.0, draft_tokens=3, basis=Basis.PAYS),
    )
