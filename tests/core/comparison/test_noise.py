"""How far the baseline is from itself, metric by metric."""

from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import ArmRun, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.noise import NoiseFloor
from loadgen.core.comparison.trade_off import Effect
from loadgen.core.comparison.verdict import Claim
from tests.core.comparison.ladders import AGAIN, BASELINE, EAGLE, ladder, slower

PLAIN_MS = {1: 20.0, 4: 22.0, 16: 30.0}


def compared(again: list[ArmRun], arm: list[ArmRun] | None = None) -> ArmsComparison:
    runs = {BASELINE: ladder(BASELINE, PLAIN_MS), EAGLE: arm or ladder(EAGLE, {1: 10.0, 4: 12.0, 16: 20.0})}
    return compare("made", "concurrency", runs, baseline=BASELINE, again=(AGAIN, again), expected={})


def floors(comparison: ArmsComparison, metric: str) -> list[NoiseFloor]:
    return [each for each in comparison.noise if each.metric == metric]


def test_each_metric_has_a_floor_of_its_own_at_each_level() -> None:
    """A second start that is alike but for its first tokens at 16 says nothing of TPOT or of other levels."""
    found = compared(slower(ladder(AGAIN, PLAIN_MS, spread=0.021), 16, ttft=3.0))
    assert [each.level for each in floors(found, "ttft_s.mean")] == [1, 4, 16]
    assert [each.differs for each in floors(found, "ttft_s.mean")] == [False, False, True]
    assert floors(found, "ttft_s.mean")[2].ratio.value == pytest.approx(3, rel=0.01)
    assert floors(found, "ttft_s.mean")[2].factor == pytest.approx(3, rel=0.01)
    assert all(1 <= each.factor < 1.05 and not each.differs for each in floors(found, "tpot_s.mean"))


def test_a_floor_is_as_high_for_a_faster_start() -> None:
    """Which of the two starts came first means nothing: a third of the time is a factor of three."""
    found = compared(slower(ladder(AGAIN, PLAIN_MS), 16, ttft=1 / 3))
    assert floors(found, "ttft_s.mean")[2].factor == pytest.approx(3, rel=0.02)


def test_what_is_within_the_floor_of_its_own_metric_is_not_claimed() -> None:
    """An arm that loses a quarter of its throughput is told of it, unless the baseline may lose as much by itself."""
    arm = slower(ladder(EAGLE, {1: 10.0, 4: 12.0, 16: 20.0}), 16, rate=0.5)
    quiet, noisy = (
        compared(again, arm).arms[0].trade_offs
        for again in (ladder(AGAIN, PLAIN_MS), slower(ladder(AGAIN, PLAIN_MS), 16, rate=0.4))
    )
    lost = [
        [each.level for each in found if each.effect is Effect.LOSS and each.metric == "output_tokens_per_s"]
        for found in (quiet, noisy)
    ]
    assert lost == [[16], []]
    assert [each.level for each in noisy if each.effect is Effect.MAY_LOSE] == [16]


@pytest.mark.parametrize("percent", range(9))
def test_the_second_start_is_judged_as_its_floors_are(percent: int) -> None:
    """What is said of TPOT in the ladder of the second start is what its floor says, however close a call that is."""
    slow = {1: 20.0, 4: 22.0 * (1 + percent / 100), 16: 30.0}
    found = compared(ladder(AGAIN, slow, spread=0.1))
    assert found.again is not None
    differing = [each.differs for each in floors(found, "tpot_s.mean")]
    assert [each.claim is not Claim.NO_DIFFERENCE for each in found.again.verdicts] == differing
    assert not differing[0]


def test_an_invalid_second_start_differs_in_nothing() -> None:
    """Its ratio is a floor all the same: whoever cannot measure the baseline twice cannot claim small effects."""
    runs = slower(ladder(AGAIN, PLAIN_MS), 16, ttft=3.0)
    runs[-1] = replace(
        runs[-1], summary=replace(runs[-1].summary, verdict=replace(runs[-1].summary.verdict, valid=False))
    )
    found = floors(compared(runs), "ttft_s.mean")[2]
    assert not found.differs
    assert found.factor == pytest.approx(3, rel=0.01)


def test_without_a_second_start_there_are_no_floors() -> None:
    """Nothing is made up."""
    runs = {BASELINE: ladder(BASELINE, PLAIN_MS), EAGLE: ladder(EAGLE, PLAIN_MS)}
    assert compare("made", "concurrency", runs, baseline=BASELINE, expected={}).noise == ()
