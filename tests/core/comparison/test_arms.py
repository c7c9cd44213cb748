"""Arms against a baseline over a ladder."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import Arm, ArmRun, ArmsComparison, Expectation
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.crossover import NoCrossover
from loadgen.core.comparison.verdict import Claim
from loadgen.core.errors import ConfigError
from loadgen.core.metrics.summary import Verdict
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

TPOTS_MS = {1: 20.0, 4: 22.0, 16: 30.0}
FADING_MS = {1: 10.0, 4: 16.0, 16: 36.0}


def compared(
    arm: Sequence[ArmRun], baseline: Sequence[ArmRun] | None = None, expected: Expectation | None = None
) -> ArmsComparison:
    """One arm against the baseline, with what was expected of it at level 4."""
    return compare(
        "made",
        "concurrency",
        {BASELINE: ladder(BASELINE, TPOTS_MS) if baseline is None else baseline, EAGLE: arm},
        baseline=BASELINE,
        expected={} if expected is None else {EAGLE: {4.0: expected}},
        notes=("made up",),
    )


def test_a_gain_that_fades() -> None:
    """Speedup is the baseline's TPOT over the arm's; claims, and the load up to which it pays, follow from it."""
    (arm,) = compared(ladder(EAGLE, FADING_MS)).arms
    gains = [level.gain for level in arm.levels if level.gain is not None]
    assert [gain.verdict.speedup.value for gain in gains] == pytest.approx([2, 22 / 16, 30 / 36], rel=0.01)
    assert [gain.verdict.claim for gain in gains] == [Claim.FASTER, Claim.FASTER, Claim.SLOWER]
    assert [gain.ratios["tpot_s.mean"].value for gain in gains] == pytest.approx([0.5, 16 / 22, 36 / 30], rel=0.01)
    assert arm.faster_up_to == 4
    assert arm.crossover is not None
    assert arm.crossover.level is not None
    assert 4 < arm.crossover.level < 16


def test_what_a_step_has_to_emit_follows_from_the_speedup() -> None:
    """An arm whose steps emit 3 tokens and that is twice as fast would break even with 1.5."""
    (arm,) = compared(ladder(EAGLE, FADING_MS, tokens_per_step=3)).arms
    first = arm.levels[0]
    assert first.tokens_per_step == 3
    assert first.gain is not None
    assert first.gain.break_even_length is not None
    assert first.gain.break_even_length.value == pytest.approx(1.5, rel=0.01)
    assert first.gain.break_even_length.low < first.gain.break_even_length.value < first.gain.break_even_length.high


def test_steps_of_unknown_length_have_no_break_even() -> None:
    """Nothing is made up where a server tells nothing of its steps."""
    (arm,) = compared(ladder(EAGLE, FADING_MS)).arms
    for level in arm.levels:
        assert level.tokens_per_step is None
        assert level.gain is not None
        assert level.gain.break_even_length is None


def test_the_baseline_is_there_without_a_gain() -> None:
    """Its own figures, level by level in ascending order, and no comparison with itself."""
    found = compared(ladder(EAGLE, FADING_MS), baseline=ladder(BASELINE, dict(reversed(TPOTS_MS.items())))).baseline
    assert [level.level for level in found.levels] == [1, 4, 16]
    assert [level.tpot_s for level in found.levels] == pytest.approx([0.020, 0.022, 0.030], rel=0.01)
    assert all(level.gain is None and level.requests == 40 for level in found.levels)
    assert found.crossover is None
    assert found.faster_up_to is None


def test_expectations_stand_at_their_levels() -> None:
    """Beside what was measured there, and nowhere else."""
    expected = Expectation(speedup=1.5, break_even_length=2.0)
    (arm,) = compared(ladder(EAGLE, FADING_MS), expected=expected).arms
    assert [level.expected for level in arm.levels] == [None, expected, None]


def test_one_start_is_said_once() -> None:
    """Notes of the ratios follow those given, each once; with two starts there is nothing to say."""
    once = compared(ladder(EAGLE, FADING_MS))
    assert once.repeats == 1
    assert once.notes[0] == "made up"
    assert len(once.notes) == 2
    assert "one start of each arm" in once.notes[1]
    twice = compared(ladder(EAGLE, FADING_MS, repeats=2), baseline=ladder(BASELINE, TPOTS_MS, repeats=2))
    assert twice.repeats == 2
    assert twice.notes == ("made up",)
    assert twice.baseline.levels[0].requests == 80


def test_runs_of_all_roles_count_for_what_is_finished() -> None:
    """Those of the baseline, of its second start, of an arm, and of the arm with its acceptance forced."""
    again, forced = Arm(name="again", label="Again"), Arm(name="forced", label="Forced")
    found = compare(
        "made",
        "concurrency",
        {BASELINE: ladder(BASELINE, TPOTS_MS, repeats=2), EAGLE: ladder(EAGLE, FADING_MS)},
        baseline=BASELINE,
        again=(again, ladder(again, {1: 20.0, 4: 22.0})),
        forced={EAGLE: {1: ladder(forced, {1: 25.0}), 4: ladder(forced, {1: 8.0})}},
        expected={},
        planned_runs=14,
    )
    assert (found.finished_runs, found.complete) == (6 + 3 + 2 + 2, False)
    assert replace(found, planned_runs=13).complete
    assert replace(found, planned_runs=None).complete


def test_too_few_requests_are_not_compared() -> None:
    """Levels without a ratio have their own figures and no gain; without any there is no crossover."""
    found = compared(
        ladder(EAGLE, FADING_MS, requests=9, tokens_per_step=3), baseline=ladder(BASELINE, TPOTS_MS, requests=9)
    )
    (arm,) = found.arms
    assert [level.gain for level in arm.levels] == [None, None, None]
    assert arm.levels[0].tpot_s == pytest.approx(0.010, rel=0.05)
    assert arm.crossover is None
    assert arm.faster_up_to is None


def test_a_level_that_the_baseline_lacks_is_not_compared() -> None:
    """The ladder is then that of the other levels."""
    (arm,) = compared(ladder(EAGLE, FADING_MS), baseline=ladder(BASELINE, {1: 20.0, 4: 22.0})).arms
    assert arm.levels[2].gain is None
    assert arm.crossover is not None
    assert arm.crossover.reason is NoCrossover.EVERYWHERE
    assert arm.crossover.low == 4


def test_other_requests_are_refused() -> None:
    """A comparison of different requests says nothing."""
    with pytest.raises(ConfigError, match="did not send the same requests"):
        compared(ladder(EAGLE, FADING_MS, first_seq=5))


def test_one_invalid_measurement_is_seen_everywhere() -> None:
    """At its level, whichever repeat it was, and for the whole."""
    runs = ladder(EAGLE, FADING_MS, repeats=2)
    broken = replace(runs[1], summary=replace(runs[1].summary, verdict=Verdict(valid=False)))
    good = compared(runs, baseline=ladder(BASELINE, TPOTS_MS, repeats=2))
    bad = compared([runs[0], broken, *runs[2:]], baseline=ladder(BASELINE, TPOTS_MS, repeats=2))
    assert good.valid
    assert not bad.valid
    assert [level.measurement.valid for level in bad.arms[0].levels] == [False, True, True]


def test_one_start_beside_several_claims_nothing() -> None:
    """A repeat that the arm lacks leaves one start of both at that level, which tells nothing of how starts differ: no
    claim, no place on the ladder, and the baseline to run there. The other levels are judged as ever."""
    baseline = ladder(BASELINE, TPOTS_MS, repeats=2)
    arm = [run for run in ladder(EAGLE, FADING_MS, repeats=2) if (run.cell.level, run.cell.repeat) != (4, 1)]
    found = compared(arm, baseline)
    gains = found.arms[0].gains
    assert [gains[level].one_start for level in (1, 4, 16)] == [False, True, False]
    assert gains[4].verdict.speedup.low > 1
    assert [gains[level].verdict.claim for level in (1, 4, 16)] == [Claim.FASTER, Claim.NO_DIFFERENCE, Claim.SLOWER]
    assert [choice.arm for choice in found.choices] == ["eagle3", "baseline", "baseline"]
    once = compared(ladder(EAGLE, FADING_MS), ladder(BASELINE, TPOTS_MS)).arms[0].gains
    assert not any(gain.one_start for gain in once.values()), "of one start of each, claims say that they are within it"
