"""What speaks against an arm whatever its speed: failed requests, and answers of another length."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.comparison.arms import ArmRun, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.gain import Worth
from loadgen.core.comparison.objection import Against
from loadgen.core.comparison.verdict import Claim
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

PLAIN_MS, PAYS_MS = {1: 20.0, 4: 22.0, 16: 30.0}, {1: 10.0, 4: 12.0, 16: 20.0}
DRAFTING = replace(EAGLE, method="eagle3", draft_tokens=3)
Change = Callable[[Cell], Cell]


def failing(requests: int, *, first: int = 0) -> Change:
    """So many requests did not complete; what is left is served as before, and the rates of the run stay."""

    def change(cell: Cell) -> Cell:
        failed = (np.arange(len(cell.seq)) >= first) & (np.arange(len(cell.seq)) < first + requests)
        columns = {name: np.where(failed, np.nan, values) for name, values in cell.columns.items()}
        return replace(cell, columns=columns, good=cell.good & ~failed)

    return change


def missing(requests: int) -> Change:
    """So many answers do not meet the objectives."""
    return lambda cell: replace(
        cell, good=np.arange(len(cell.seq)) >= requests, rates={**cell.rates, "goodput_rps": 1.0}
    )


def counting(factor: float) -> Change:
    """A server that tells so many times the tokens."""
    return lambda cell: replace(cell, columns={**cell.columns, "output_tokens": cell.columns["output_tokens"] * factor})


def at(runs: list[ArmRun], change: Change, *levels: float) -> list[ArmRun]:
    return [replace(run, cell=change(run.cell)) if run.cell.level in levels else run for run in runs]


def compared(arm: list[ArmRun], *, baseline: list[ArmRun] | None = None) -> ArmsComparison:
    runs = {BASELINE: baseline or ladder(BASELINE, PLAIN_MS), DRAFTING: arm}
    return compare("made", "concurrency", runs, baseline=BASELINE, expected={})


def recommended(comparison: ArmsComparison) -> list[str]:
    return [each.arm for each in comparison.choices]


def test_an_arm_that_fails_its_requests_is_not_recommended() -> None:
    """Its TPOT is twice as fast at 4, and 24 of 40 requests fail: that costs, and no drafts are to be pasted there."""
    found = compared(at(ladder(DRAFTING, PAYS_MS), failing(24), 4))
    (arm,) = found.arms
    (objection,) = arm.objections
    assert (objection.against, objection.level, objection.certain) == (Against.FAILURES, 4, True)
    assert (objection.baseline, objection.arm) == pytest.approx((0, 0.6))
    assert arm.gains[4].verdict.claim is Claim.FASTER
    assert arm.gains[4].worth is Worth.COSTS
    assert recommended(found) == ["eagle3", "baseline", "eagle3"]
    assert found.choices[1].passed_over == ("eagle3",)
    assert found.schedules[0].draft_tokens_by_batch == ((1, 2, 3), (3, 8, 0), (9, 16, 3))


def test_failures_that_the_baseline_shares_are_no_objection() -> None:
    """Neither the same requests, nor one more that chance may have picked."""
    for more in (0, 1):
        found = compared(
            at(ladder(DRAFTING, PAYS_MS), failing(10 + more), 4),
            baseline=at(ladder(BASELINE, PLAIN_MS), failing(10), 4),
        )
        assert found.arms[0].objections == ()
        assert recommended(found) == ["eagle3"] * 3


def test_other_requests_that_fail_are_no_more_of_them() -> None:
    """Ten of the arm's and ten others of the baseline's: with either, as many fared worse."""
    found = compared(
        at(ladder(DRAFTING, PAYS_MS), failing(10), 4),
        baseline=at(ladder(BASELINE, PLAIN_MS), failing(10, first=20), 4),
    )
    assert found.arms[0].objections == ()


def test_failures_that_may_be_chance_hold_the_recommendation_back() -> None:
    """4 of 40 are not certain at the level of 1 %, and too many to run on: neither it nor its drafts are offered, also
    where the levels on either side pay."""
    found = compared(at(ladder(DRAFTING, PAYS_MS), failing(4), 4))
    (objection,) = found.arms[0].objections
    assert not objection.certain
    assert found.arms[0].gains[4].worth is Worth.WITHHELD
    assert recommended(found) == ["eagle3", "baseline", "eagle3"]
    assert (found.choices[1].passed_over, found.choices[1].held_back) == ((), ("eagle3",))
    assert found.schedules[0].draft_tokens_by_batch == ((1, 2, 3), (3, 8, 0), (9, 16, 3))


def test_a_level_with_too_few_answers_to_compare_takes_no_drafts_from_its_neighbours() -> None:
    """35 of 40 fail, so there is no ratio; that is no reason to draft there as beside it."""
    found = compared(at(ladder(DRAFTING, PAYS_MS), failing(35), 4))
    assert 4 not in found.arms[0].gains
    assert [each.level for each in found.arms[0].objections] == [4]
    assert found.schedules[0].draft_tokens_by_batch == ((1, 2, 3), (3, 8, 0), (9, 16, 3))


def test_repeats_of_one_request_count_once() -> None:
    """Two requests that fail at every of five starts are two, not ten."""
    runs = at(ladder(DRAFTING, {4: 12.0}, repeats=5), failing(2), 4)
    found = compared(runs, baseline=ladder(BASELINE, {4: 22.0}, repeats=5))
    assert [each.certain for each in found.arms[0].objections] == [False]


def test_more_requests_that_fail_now_and_then_are_not_more_failures() -> None:
    """Fifteen that fail at one start of eight, against two of the baseline that always do: 15 failures against 16."""
    rare = [
        replace(run, cell=failing(15)(run.cell)) if run.cell.repeat == 0 else run
        for run in ladder(DRAFTING, {4: 12.0}, repeats=8)
    ]
    baseline = at(ladder(BASELINE, {4: 22.0}, repeats=8), failing(2, first=30), 4)
    assert compared(rare, baseline=baseline).arms[0].objections == ()


def test_an_arm_that_certainly_meets_the_objectives_less_often_is_not_recommended() -> None:
    """20 of 40 answers come too late, where the baseline's are all in time."""
    runs = at(ladder(DRAFTING, PAYS_MS), missing(20), 4)
    found = compared(runs, baseline=at(ladder(BASELINE, PLAIN_MS), missing(0), 4))
    (objection,) = found.arms[0].objections
    assert (objection.against, objection.baseline, objection.arm) == (Against.ATTAINMENT, 1.0, 0.5)
    assert found.arms[0].gains[4].worth is Worth.COSTS
    assert found.choices[1].arm == "baseline"


@pytest.mark.parametrize("factor", [0.5, 0.97, 1.03, 2.0])
def test_answers_of_another_length_are_no_claim_of_tpot(factor: float) -> None:
    """Whether a server invents tokens or answers end elsewhere: time a token compares unlike with unlike."""
    found = compared(at(ladder(DRAFTING, PAYS_MS), counting(factor), 4))
    (arm,) = found.arms
    assert [(each.against, each.level) for each in arm.objections] == [(Against.LENGTHS, 4)]
    assert (arm.gains[4].verdict.claim, arm.gains[4].worth) == (Claim.NO_DIFFERENCE, Worth.WITHHELD)
    assert arm.crossover is not None
    assert arm.crossover.faster == (1, 16)
    assert recommended(found) == ["eagle3", "baseline", "eagle3"]
    assert found.schedules[0].draft_tokens_by_batch == ((1, 2, 3), (3, 8, 0), (9, 16, 3))


def test_two_percent_of_length_are_forgiven() -> None:
    """As docs/statistics.md has it."""
    found = compared(at(ladder(DRAFTING, PAYS_MS), counting(1.019), 4))
    assert found.arms[0].objections == ()
    assert recommended(found) == ["eagle3"] * 3
