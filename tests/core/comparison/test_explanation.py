"""Why an arm is as fast as it is, from arms whose TPOT and steps are known."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from loadgen.core.comparison.arms import Arm, ArmLadder, ArmRun, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.draft_length import Basis
from loadgen.core.comparison.explanation import Cause, Explanation, Fall, told
from loadgen.core.comparison.verdict import Claim
from loadgen.core.metrics.summary import Gauge, RequestTimes, Speculation
from loadgen.core.server.configuration import ServerConfiguration
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

DRAFTING = replace(EAGLE, method="eagle3", draft_tokens=3)
TPOTS_MS = {1: 20.0, 4: 20.0, 16: 20.0}
FORCED_MS = {1: 24.0, 4: 30.0, 16: 44.0}
"""With nothing accepted: what a step has to emit to pay is 1.2, 1.5 and 2.2 tokens."""


def covering(runs: list[ArmRun], coverage_ratio: float = 1.0) -> list[ArmRun]:
    """The same runs, with so many of their steps drafted for."""
    speculation = Speculation(origin="stream", coverage_ratio=coverage_ratio)
    return [replace(run, summary=replace(run.summary, speculation=speculation)) for run in runs]


def explained(
    arm_ms: Mapping[int, float],
    *,
    tokens_per_step: int = 2,
    perfect_ms: Mapping[int, float] | None = None,
    coverage_ratio: float = 1.0,
) -> ArmsComparison:
    """An arm of three draft tokens with its forced arms, against a baseline of 20 ms."""
    forced = {1: covering(ladder(Arm(name="forced-1", label="F"), FORCED_MS), coverage_ratio)}
    if perfect_ms is not None:
        forced[4] = ladder(Arm(name="forced-4", label="F"), perfect_ms, tokens_per_step=4)
    arm = covering(ladder(DRAFTING, arm_ms, tokens_per_step=tokens_per_step))
    runs = {BASELINE: ladder(BASELINE, TPOTS_MS), DRAFTING: arm}
    return compare("made", "concurrency", runs, baseline=BASELINE, forced={DRAFTING: forced}, expected={})


def explanations(comparison: ArmsComparison) -> list[Explanation]:
    return [level.explanation for level in comparison.arms[0].levels if level.explanation is not None]


def test_forced_runs_tell_what_a_step_has_to_emit() -> None:
    """Nothing accepted over the baseline; where steps explain everything, nothing is left."""
    found = explanations(explained({1: 12.0, 4: 15.0, 16: 22.0}))
    needed = [each.needed for each in found if each.needed is not None]
    assert [each.length.value for each in needed] == pytest.approx([1.2, 1.5, 2.2], rel=0.01)
    assert [each.predicted_speedup for each in needed] == pytest.approx([2 / 1.2, 2 / 1.5, 2 / 2.2], rel=0.01)
    assert [each.residual.value for each in needed if each.residual is not None] == pytest.approx([1, 1, 1], rel=0.02)


def test_forced_runs_tell_what_no_drafter_can_pass() -> None:
    """The speedup with every draft accepted, as measured."""
    found = explanations(explained({1: 12.0, 4: 15.0, 16: 22.0}, perfect_ms={1: 6.0, 4: 8.0, 16: 10.0}))
    assert [each.perfect_drafter.value for each in found if each.perfect_drafter] == pytest.approx(
        [20 / 6, 20 / 8, 2], rel=0.01
    )


def test_an_oracle_pays_only_for_what_is_accepted() -> None:
    """At 2 tokens a step it proposes 1 token where the arm proposes 3, so a third of what drafts add to a step."""
    found = explanations(explained({1: 12.0, 4: 15.0, 16: 22.0}))
    assert [each.oracle_length for each in found] == pytest.approx(
        [2 / (1 + extra / 3) for extra in (0.2, 0.5, 1.2)], rel=0.01
    )


def test_a_share_of_steps_that_draft_makes_an_oracle_gain_less() -> None:
    """An arm that proposes 0.75 tokens on average would propose more: 1 for the tokens that its steps emit."""
    runs = {
        BASELINE: ladder(BASELINE, TPOTS_MS),
        DRAFTING: covering(ladder(DRAFTING, {1: 12.0}, tokens_per_step=2), 0.25),
    }
    forced = {DRAFTING: {1: covering(ladder(Arm(name="f", label="F"), {1: 24.0}), 0.25)}}
    comparison = compare("made", "concurrency", runs, baseline=BASELINE, forced=forced, expected={})
    (found,) = explanations(comparison)
    assert found.oracle_length == pytest.approx(2 / (1 + 0.2 / 0.75), rel=0.01)


def test_forced_arms_that_draft_at_other_steps_are_scaled_to_the_arms_own() -> None:
    """Forced steps that draft twice as often as the arm's cost twice as much more than a plain one; the oracle pays for
    the drafts that the arm has."""
    runs = {
        BASELINE: ladder(BASELINE, TPOTS_MS),
        DRAFTING: covering(ladder(DRAFTING, {1: 12.0}, tokens_per_step=2), 0.4),
    }
    forced = {DRAFTING: {1: covering(ladder(Arm(name="f", label="F"), {1: 24.0}), 0.8)}}
    (found,) = explanations(compare("made", "concurrency", runs, baseline=BASELINE, forced=forced, expected={}))
    assert (found.forced_coverage_ratio, found.drafting_share) == (0.8, 0.5)
    assert found.needed is not None
    assert found.needed.length.value == pytest.approx(1.1, rel=0.01)
    assert found.oracle_length == pytest.approx(2 / (1 + 0.1 / 1.2), rel=0.01)


def test_forced_arms_of_unknown_coverage_are_taken_as_they_are() -> None:
    """Nothing is scaled by what nobody told."""
    runs = {BASELINE: ladder(BASELINE, TPOTS_MS), DRAFTING: ladder(DRAFTING, {1: 12.0}, tokens_per_step=2)}
    forced = {DRAFTING: {1: ladder(Arm(name="f", label="F"), {1: 24.0})}}
    (found,) = explanations(compare("made", "concurrency", runs, baseline=BASELINE, forced=forced, expected={}))
    assert (found.forced_coverage_ratio, found.drafting_share) == (None, 1)
    assert found.needed is not None
    assert found.needed.length.value == pytest.approx(1.2, rel=0.01)


def test_without_forced_runs_nothing_is_made_up() -> None:
    """The bound of whole requests needs none."""
    runs = {BASELINE: ladder(BASELINE, TPOTS_MS), DRAFTING: ladder(DRAFTING, TPOTS_MS)}
    for found in explanations(compare("made", "concurrency", runs, baseline=BASELINE, expected={})):
        assert (found.needed, found.perfect_drafter, found.oracle_length) == (None, None, None)
        assert found.forced_coverage_ratio is None
        assert found.request is not None


def test_a_request_gains_what_its_decoding_is() -> None:
    """Amdahl's law with the baseline's share of decoding: no more than 1 / (1 - share), and less than TPOT does."""
    comparison = explained({1: 10.0, 4: 10.0, 16: 10.0})
    cell = ladder(BASELINE, TPOTS_MS)[0].cell
    share = 1 - cell.columns["ttft_s"].sum() / cell.columns["e2el_s"].sum()
    request = explanations(comparison)[0].request
    assert request is not None
    assert request.decode_ratio == pytest.approx(share)
    assert request.speedup == pytest.approx(1 / (1 - share + share / 2), rel=0.01)
    assert request.limit == pytest.approx(1 / (1 - share))


def fallen(comparison: ArmsComparison) -> Fall:
    found = comparison.arms[0].fall
    assert found is not None
    return found


def test_a_speedup_falls_because_steps_cost_more() -> None:
    """Acceptance is the same at every level."""
    found = fallen(explained({1: 10.0, 4: 14.0, 16: 25.0}))
    assert (found.low, found.high) == (1, 16)
    assert found.cause is Cause.STEPS
    assert found.length_ratio == pytest.approx(1)
    assert found.needed_ratio == pytest.approx(2.5, rel=0.01)
    assert found.step_ratio == pytest.approx(44 / 24, rel=0.01)
    assert found.length_share == pytest.approx(0, abs=0.01)


def test_a_speedup_falls_because_less_is_accepted() -> None:
    """A step costs the same at every level, and emits less at the highest."""
    many, few = ladder(DRAFTING, {1: 10.0}, tokens_per_step=4), ladder(DRAFTING, {16: 20.0}, tokens_per_step=2)
    runs = {BASELINE: ladder(BASELINE, TPOTS_MS), DRAFTING: [*many, *few]}
    found = fallen(compare("made", "concurrency", runs, baseline=BASELINE, expected={}))
    assert found.cause is Cause.ACCEPTANCE
    assert found.length_ratio == pytest.approx(0.5)
    assert found.step_ratio is None
    assert found.length_share == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("arm_ms", [{1: 15.0, 4: 12.0, 16: 10.0}, {1: 15.0, 4: 15.0, 16: 15.02}])
def test_what_does_not_fall_has_no_cause(arm_ms: Mapping[int, float]) -> None:
    """Neither a speedup that rises nor one that may be the same."""
    assert explained(arm_ms).arms[0].fall is None


def test_steps_of_unknown_length_have_no_cause() -> None:
    """The server tells nothing of its steps."""
    runs = {BASELINE: ladder(BASELINE, TPOTS_MS), DRAFTING: ladder(DRAFTING, {1: 10.0, 16: 30.0})}
    assert compare("made", "concurrency", runs, baseline=BASELINE, expected={}).arms[0].fall is None


def test_the_noise_floor_is_the_baseline_against_itself() -> None:
    """A gain within what a second start of the baseline differs by is not claimed, a larger one is."""
    second = Arm(name="baseline-again", label="Baseline again")
    runs = {BASELINE: ladder(BASELINE, TPOTS_MS, spread=0.001), EAGLE: ladder(EAGLE, {1: 19.0, 4: 10.0, 16: 19.0})}
    again = ladder(second, {1: 18.0, 4: 20.0}, spread=0.001)
    comparison = compare("made", "concurrency", runs, baseline=BASELINE, again=(second, again), expected={})
    verdicts = comparison.arms[0].verdicts
    assert [each.claim for each in verdicts] == [Claim.NO_DIFFERENCE, Claim.FASTER, Claim.FASTER]
    assert verdicts[0].noise_floor == pytest.approx(20 / 18, rel=0.01)
    assert verdicts[2].noise_floor is None
    assert comparison.again is not None
    assert isinstance(comparison.again, ArmLadder)
    assert comparison.ladders[-1] is comparison.again


def test_only_repeats_that_both_sides_have_are_compared() -> None:
    """One that an arm lacks does not count for the baseline either; an arm with none in common is not compared."""
    baseline = ladder(BASELINE, {1: 20.0}, repeats=3)
    slow = ladder(BASELINE, {1: 99.0}, repeats=3)[1]
    baseline[1] = slow
    arm = [run for run in ladder(EAGLE, {1: 10.0}, repeats=3) if run.cell.repeat != 1]
    comparison = compare("made", "concurrency", {BASELINE: baseline, EAGLE: arm}, baseline=BASELINE, expected={})
    (verdict,) = comparison.arms[0].verdicts
    assert verdict.speedup.value == pytest.approx(2, rel=0.01)
    alone = [replace(run, cell=replace(run.cell, repeat=9)) for run in ladder(EAGLE, {1: 10.0})]
    lonely = compare("made", "concurrency", {BASELINE: baseline, EAGLE: alone}, baseline=BASELINE, expected={})
    assert lonely.arms[0].verdicts == []


def test_what_to_run_and_to_draft_follows_from_the_claims() -> None:
    """The fastest that is faster for certain, else the baseline; by method the best draft length at each batch size."""
    long = replace(DRAFTING, name="eagle3-5", draft_tokens=5)
    runs = {
        BASELINE: ladder(BASELINE, TPOTS_MS),
        DRAFTING: ladder(DRAFTING, {1: 12.0, 4: 14.0, 16: 30.0}),
        long: ladder(long, {1: 10.0, 4: 16.0, 16: 40.0}),
    }
    comparison = compare("made", "concurrency", runs, baseline=BASELINE, expected={})
    assert [(each.level, each.arm) for each in comparison.choices] == [(1, "eagle3-5"), (4, "eagle3"), (16, "baseline")]
    assert comparison.choices[2].speedup is None
    (schedule,) = comparison.schedules
    assert schedule.method == "eagle3"
    assert schedule.draft_tokens_by_batch == ((1, 2, 5), (3, 8, 3), (9, 16, 0))
    assert {point.arm for point in comparison.pareto} <= {"baseline", "eagle3", "eagle3-5"}
    part = replace(DRAFTING, name="eagle3-7", draft_tokens=7)
    runs[part] = ladder(part, {1: 5.0, 4: 5.0})
    (whole,) = compare("made", "concurrency", runs, baseline=BASELINE, expected={}).schedules
    assert [(each.draft_tokens, each.basis) for each in whole.lengths] == [
        (7, Basis.PAYS),
        (7, Basis.PAYS),
        (0, Basis.DEFAULT),  # what seven tokens do at 16 was not measured
    ]
    rates = compare("made", "request_rate_rps", runs, baseline=BASELINE, expected={})
    assert rates.schedules == ()


@pytest.mark.parametrize(
    ("price_per_hour", "tokens_per_s", "cost"),
    [(3.6, 1000.0, 1.0), (2.0, 250.0, 2.2222222), (2.0, 1000.0, 0.5555556), (98.32, 12_000.0, 2.2759259)],
)
def test_tokens_cost_what_the_server_costs(price_per_hour: float, tokens_per_s: float, cost: float) -> None:
    """By hand: 2 an hour at 250 tokens/s are 900,000 tokens for 2, hence 2.22 for a million; of each arm and level its
    own throughput, as a geometric mean over the repeats. None without a price."""

    def giving(runs: list[ArmRun], factor: float) -> list[ArmRun]:
        """Two repeats, one above the rate and one below it by the same factor; half of it at the second level."""
        rates = [tokens_per_s * factor * level * spread for level in (1, 0.5) for spread in (1.25, 0.8)]
        return [
            replace(run, cell=replace(run.cell, rates=run.cell.rates | {"output_tokens_per_s": rate}))
            for run, rate in zip(runs, rates, strict=True)
        ]

    two = {1: 20.0, 4: 20.0}
    runs = {
        BASELINE: giving(ladder(BASELINE, two, repeats=2), 1),
        EAGLE: giving(ladder(EAGLE, two, repeats=2), 2),
    }
    priced = compare("made", "concurrency", runs, baseline=BASELINE, expected={}, price_per_hour=price_per_hour)
    costs = [[level.cost_per_million_tokens for level in each.levels] for each in (priced.baseline, *priced.arms)]
    assert costs[0] == pytest.approx([cost, 2 * cost], rel=1e-6)
    assert costs[1] == pytest.approx([cost / 2, cost], rel=1e-6)
    free = compare("made", "concurrency", runs, baseline=BASELINE, expected={})
    assert free.baseline.levels[0].cost_per_million_tokens is None


def test_what_a_server_tells_is_kept_as_means() -> None:
    """Means over the repeats where all of them tell, the most for what can run full."""
    first, second = (run.summary for run in ladder(EAGLE, {1: 10.0}, tokens_per_step=2, repeats=2))
    servers = [
        replace(
            first.server,
            request_times=RequestTimes(queue_ratio=queue, prefill_ratio=0.2, decode_ratio=decode),
            configuration=ServerConfiguration(kv_blocks=blocks),
            kv_used_ratio=Gauge(peak=peak),
            preemptions=preempted,
        )
        for queue, decode, blocks, peak, preempted in ((0.1, 0.7, 100, 0.5, 0.0), (0.3, None, 102, None, 4.0))
    ]
    found = told([replace(first, server=servers[0]), replace(second, server=servers[1])])
    assert found.queue_ratio == pytest.approx(0.2)
    assert found.decode_ratio is None
    assert found.kv_blocks == 101
    assert (found.kv_peak_ratio, found.preemptions) == (0.5, 4.0)
    assert found.acceptance_length_by_origin == {"stream": 2.0}
    assert found.acceptance_by_position == (1.0,)
    nothing = told([run.summary for run in ladder(BASELINE, {1: 10.0})])
    assert (nothing.acceptance_length_by_origin, nothing.acceptance_by_position) == ({}, None)
