"""Repeats of an arm of an experiment as one side of a comparison."""

from dataclasses import replace

import pytest

from loadgen.core.comparison.side import Side, side_of_repeats
from loadgen.core.comparison.side_by_side import Candidate, side_by_side
from loadgen.core.errors import ConfigError
from tests.core.comparison.sides import records, side, source


def repeat(number: int, *, arm: str = "a", slower: float = 1.0, noise: int | None = None) -> Side:
    """One run of an arm."""
    made = side(records(slower=slower, noise=number if noise is None else noise))
    cells = tuple(replace(cell, repeat=number) for cell in made.cells)
    return replace(made, arm=arm, repeat=number, cells=cells)


def compared(baseline: list[Side], candidate: list[Side]) -> Candidate:
    """The only level of a comparison of two experiments."""
    (found,) = side_by_side(source("old", *baseline), [source("new", *candidate)]).candidates
    return found


def valued(**values: float | None) -> Side:
    """A side with these values alone."""
    return replace(repeat(1), values=values)


def test_a_metric_is_the_geometric_mean_over_repeats_and_a_share_the_arithmetic() -> None:
    """As the ratio of two such means is the mean of the ratios; what a repeat lacks is lacking, and 0 is a value."""
    pooled = side_of_repeats(
        [
            valued(**{"tpot_s.p50": 0.01, "error_ratio": 0.0, "ttft_s.p50": 0.1, "goodput_rps": 0.0}),
            valued(**{"tpot_s.p50": 0.04, "error_ratio": 0.5, "ttft_s.p50": None, "goodput_rps": 4.0}),
        ]
    )
    assert pooled.values["tpot_s.p50"] == pytest.approx(0.02)
    assert pooled.values["error_ratio"] == 0.25
    assert pooled.values["ttft_s.p50"] is None
    assert pooled.values["goodput_rps"] == 2.0


def test_a_single_repeat_is_what_it_was() -> None:
    """Not one digit of it changes."""
    alone = repeat(1)
    assert side_of_repeats([alone]) is alone


def test_what_repeats_do_not_agree_on_is_not_known() -> None:
    """Whether they speculate, what they were to attain; one that is invalid makes the whole invalid."""
    first, second = repeat(1), repeat(2)
    pooled = side_of_repeats(
        [replace(first, speculates=True, valid=True), replace(second, speculates=False, valid=False)]
    )
    assert pooled.speculates is None
    assert pooled.valid is False
    assert pooled.requests == first.requests
    assert side_of_repeats([first, replace(second, requests="other")]).requests is None


def test_the_interval_holds_what_differs_from_start_to_start() -> None:
    """The same means with starts that differ are less certain than with starts that do not."""
    steady = compared([repeat(1), repeat(2)], [repeat(1, slower=1.1), repeat(2, slower=1.1)])
    unsteady = compared([repeat(1), repeat(2)], [repeat(1, slower=1.0), repeat(2, slower=1.21)])
    widths = []
    for found in (steady, unsteady):
        pair = found.metrics["tpot_s.mean"]
        assert pair.low is not None
        assert pair.high is not None
        assert pair.ratio == pytest.approx(1.1, rel=0.01)
        widths.append(pair.high / pair.low)
    assert widths[1] > 2 * widths[0]


def test_repeats_that_only_one_has_count_for_neither() -> None:
    """The ratio is that of the common ones, and the other is named."""
    found = compared([repeat(1), repeat(2, slower=9.0)], [repeat(1, slower=1.1), repeat(3, slower=9.0)])
    assert found.repeats == 1
    assert found.metrics["tpot_s.mean"].ratio == pytest.approx(1.1, rel=0.02)
    assert {
        "baseline: left out, since the other lacks it: repeat 2",
        "candidate: left out, since the other lacks it: repeat 3",
    } <= set(found.notes)


def test_repeats_that_measured_other_requests_have_no_interval() -> None:
    """One lost a request that the others have: values stand, the ratio's interval does not."""
    short = side(records()[:-1])
    lost = replace(short, arm="a", repeat=2, requests=repeat(2).requests, workload=repeat(2).workload)
    lost = replace(lost, cells=tuple(replace(cell, repeat=2) for cell in short.cells))
    found = compared([repeat(1), repeat(2)], [repeat(1), lost])
    assert not found.paired
    assert found.metrics["tpot_s.mean"].ratio is not None
    assert found.metrics["tpot_s.mean"].low is None
    assert "no intervals: the experiments did not measure the same requests" in found.notes


def test_arms_are_never_mixed_up() -> None:
    """An arm meets the arm of its name and no other; without a common one there is nothing to compare."""
    old = [repeat(1), repeat(1, arm="b", slower=2.0)]
    found = side_by_side(source("old", *old), [source("new", *reversed(old))])
    assert [(each.arm, each.metrics["tpot_s.mean"].ratio) for each in found.candidates] == [("a", 1.0), ("b", 1.0)]
    with pytest.raises(ConfigError, match="no level in common: concurrency 1 of a and concurrency 1 of b"):
        side_by_side(source("old", old[0]), [source("new", old[1])])
    with pytest.raises(ConfigError, match="old: has concurrency 1 of a twice"):
        side_by_side(source("old", old[0], old[0]), [source("new", old[0])])
