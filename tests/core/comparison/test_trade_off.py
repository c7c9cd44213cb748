"""What is said beside a TPOT that pays, and what is recommended."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.comparison.arms import ArmRun, ArmsComparison
from loadgen.core.comparison.assembly import compare
from loadgen.core.comparison.cell import RATES
from loadgen.core.comparison.gain import Worth
from loadgen.core.comparison.ratio import Note, Ratio
from loadgen.core.comparison.trade_off import BESIDE, DECISIVE, HEADLINE, Effect, TradeOff, trade_offs
from loadgen.core.comparison.verdict import Claim, verdicts
from loadgen.core.stats.log_ratio import LogRatio
from tests.core.comparison.gains import around, gain, gains
from tests.core.comparison.ladders import BASELINE, EAGLE, ladder

LEVELS = (1.0, 8.0, 32.0)
Effects = Mapping[str, Sequence[float]]
FASTER = {HEADLINE: [-0.4, -0.3, -0.2]}


def found(effects: Effects, *, error: float = 0.01, notes: tuple[Note, ...] = ()) -> dict[float, tuple[TradeOff, ...]]:
    """From logarithms of arm / baseline by metric, a level each, known to a standard error."""
    ratios = made(effects, error=error, notes=notes)
    return trade_offs(verdicts([ratios[level][HEADLINE] for level in LEVELS]), ratios)


def made(effects: Effects, *, error: float = 0.01, notes: tuple[Note, ...] = ()) -> dict[float, dict[str, Ratio]]:
    return {
        level: {
            metric: Ratio(
                metric=metric,
                level=level,
                log_ratio=LogRatio(
                    log=logs[place], start_variance=None, request_variance=error**2, degrees=1e5, n=100_001
                ),
                left_out_ratio=0.0,
                notes=notes if metric in RATES else (),
            )
            for metric, logs in effects.items()
        }
        for place, level in enumerate(LEVELS)
    }


def told(effects: Effects, **given_so: float) -> list[tuple[str, float, Effect]]:
    return [(each.metric, each.level, each.effect) for of in found(effects, **given_so).values() for each in of]


def test_what_follows_tpot_needs_no_words() -> None:
    """E2EL falls with it, throughput rises, first tokens stay as they are."""
    beside = {"e2el_s.mean": [-0.3, -0.2, -0.1], "output_tokens_per_s": [0.3, 0.2, 0.1], "ttft_s.mean": [0.0] * 3}
    assert told(FASTER | beside) == []


def test_what_goes_the_other_way_is_a_loss() -> None:
    """With its ratio, where and as far as it does."""
    beside = {"e2el_s.mean": [-0.3, -0.2, 0.1], "output_tokens_per_s": [0.3, 0.2, -0.1], "ttft_s.mean": [0, 0.2, 0.5]}
    losses = found(FASTER | beside)
    assert [(each.metric, each.effect) for each in losses[32.0]] == [(metric, Effect.LOSS) for metric in BESIDE[:3]]
    assert [each.metric for each in losses[8.0]] == ["ttft_s.mean"]
    assert losses[1.0] == ()
    assert math.isclose(losses[32.0][2].ratio.value, math.exp(-0.1))


def test_what_fades_earlier_is_no_gain() -> None:
    """TPOT still pays at 32, and E2EL and throughput show nothing there; first tokens are not expected to gain."""
    beside = {"e2el_s.mean": [-0.3, -0.2, 0.0], "output_tokens_per_s": [0.3, 0.2, 0.0], "ttft_s.mean": [0.0] * 3}
    assert told(FASTER | beside) == [
        (metric, 32.0, Effect.NO_GAIN) for metric in ("e2el_s.mean", "output_tokens_per_s")
    ]


def test_what_looks_far_worse_without_certainty_may_be_lost() -> None:
    """Whole answers of 2.5 times the time, known to a factor of e: no loss for certain, and no mere lack of a gain. A
    few percent are that; first tokens hold nothing back."""
    beside = {"e2el_s.mean": [0.9, 0.05, 0.0], "output_tokens_per_s": [-0.9, 0.0, 0.0], "ttft_s.mean": [0.9] * 3}
    ratios = made(FASTER)
    wide = made(beside, error=1.0)
    both = {level: ratios[level] | wide[level] for level in LEVELS}
    of = trade_offs(verdicts([both[level][HEADLINE] for level in LEVELS]), both)
    assert {(each.metric, each.effect) for each in of[1.0]} == {
        ("e2el_s.mean", Effect.MAY_LOSE),
        ("output_tokens_per_s", Effect.MAY_LOSE),
    }
    assert {each.effect for each in (*of[8.0], *of[32.0])} == {Effect.NO_GAIN}
    assert not any(each.decisive for each in of[1.0])
    slower = made({HEADLINE: [0.0] * 3} | beside, error=1.0)
    assert not any(trade_offs(verdicts([slower[level][HEADLINE] for level in LEVELS]), slower).values())


def test_rates_in_an_open_loop_can_only_be_lost() -> None:
    """Both arms serve what arrives; E2EL is told as ever."""
    beside = {"e2el_s.mean": [-0.3, -0.2, 0.0], "output_tokens_per_s": [0.0, 0.0, -0.1], "goodput_rps": [0.0] * 3}
    of = found(FASTER | beside, notes=(Note.FIXED_RATE,))
    assert {each.metric: each.effect for each in of[32.0]} == {
        "e2el_s.mean": Effect.NO_GAIN,
        "output_tokens_per_s": Effect.LOSS,
    }
    assert (of[1.0], of[8.0]) == ((), ())


def test_a_loss_is_told_also_where_the_tpot_is_only_said_to_pay() -> None:
    """A speedup above 1 that may be chance lies below the crossover all the same; a slower TPOT needs no more words."""
    beside = {"e2el_s.mean": [0.1, 0.1, 0.1]}
    assert told({HEADLINE: [-0.4, -0.005, 0.2]} | beside) == [("e2el_s.mean", level, Effect.LOSS) for level in (1, 8)]


def test_a_loss_within_the_noise_floor_is_none() -> None:
    """By the baseline against itself, in the same metric."""
    ratios = made(FASTER | {"ttft_s.mean": [0.1, 0.1, 0.1]})
    headline = verdicts([ratios[level][HEADLINE] for level in LEVELS])
    itself = made({"ttft_s.mean": [0.15] * 3, HEADLINE: [0.0] * 3})
    noise = [each for of_level in itself.values() for each in of_level.values()]
    assert all(trade_offs(headline, ratios).values())
    assert not any(trade_offs(headline, ratios, noise).values())


def test_a_gain_within_the_noise_floor_is_none() -> None:
    """Whole answers are 10 % faster, and the baseline's may differ from itself by more than that."""
    ratios = made(FASTER | {"e2el_s.mean": [-0.1, -0.1, -0.1]})
    headline = verdicts([ratios[level][HEADLINE] for level in LEVELS])
    noise = [each for of_level in made({"e2el_s.mean": [0.15] * 3}).values() for each in of_level.values()]
    assert not any(trade_offs(headline, ratios).values())
    assert [each.effect for of in trade_offs(headline, ratios, noise).values() for each in of] == [Effect.NO_GAIN] * 3


logs = st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=3)
all_metrics = st.fixed_dictionaries(dict.fromkeys((HEADLINE, *BESIDE), logs))


@settings(deadline=None)
@given(all_metrics, st.floats(0.001, 0.2))
def test_silence_means_that_the_others_gain_as_well(effects: Effects, error: float) -> None:
    """Where TPOT is claimed, E2EL, throughput and goodput are claimed to gain at that level, or are told not to; what
    is told to be lost is worse for certain, and nothing is told where TPOT does not pay."""
    ratios = made(effects, error=error)
    headline = verdicts([ratios[level][HEADLINE] for level in LEVELS])
    beside = trade_offs(headline, ratios)
    gained = {
        (metric, verdict.level)
        for metric in DECISIVE
        for verdict in verdicts([ratios[level][metric] for level in LEVELS])
        if verdict.claim is Claim.FASTER
    }
    for verdict in headline:
        of = {each.metric: each for each in beside[verdict.level]}
        assert verdict.speedup.value > 1 or not of
        for metric in DECISIVE if verdict.claim is Claim.FASTER else ():
            assert (metric in of) != ((metric, verdict.level) in gained)
        for each in of.values():
            if each.effect is Effect.LOSS:
                speedup = ratios[verdict.level][each.metric].speedup.estimate()
                assert speedup.high < 1


@settings(deadline=None)
@given(all_metrics)
def test_fewer_metrics_are_never_told_less_of(effects: Effects) -> None:
    """Holm's procedure: each metric more makes a claim of loss harder, none easier."""
    everything = set(told(effects, error=0.05))
    for metric in BESIDE:
        alone = set(told({HEADLINE: effects[HEADLINE], metric: effects[metric]}, error=0.05))
        assert {each for each in everything if each[0] == metric and each[2] is Effect.LOSS} <= alone


def test_a_ladder_of_equals_is_hardly_ever_accused() -> None:
    """Something is lost in 5 % of such ladders at most; of 400, in 20 and three standard deviations of chance."""
    rng = np.random.default_rng(3)
    accused = sum(
        bool(told({metric: rng.normal(0, 0.02, 3).tolist() for metric in (HEADLINE, *BESIDE)}, error=0.02))
        for _ in range(400)
    )
    assert accused <= 20 + 3 * math.sqrt(400 * 0.05 * 0.95)


def losing(runs: list[ArmRun], level: float, *, slower: float, invalid: bool = False) -> list[ArmRun]:
    """The same runs, but at one level answers take longer as a whole, and fewer tokens come in all."""
    changed = []
    for run in runs:
        cell, summary = run.cell, run.summary
        if cell.level == level:
            columns = cell.columns | {"e2el_s": cell.columns["e2el_s"] * slower}
            rates = {name: None if rate is None else rate / slower for name, rate in cell.rates.items()}
            cell = replace(cell, columns=columns, rates=rates)
            summary = replace(summary, verdict=replace(summary.verdict, valid=not invalid))
        changed.append(ArmRun(cell=cell, summary=summary))
    return changed


def compared(arm: list[ArmRun]) -> ArmsComparison:
    drafting = replace(EAGLE, method="eagle3", draft_tokens=3)
    runs = {BASELINE: ladder(BASELINE, {1: 20.0, 4: 22.0, 16: 30.0}), drafting: arm}
    return compare("made", "concurrency", runs, baseline=BASELINE, expected={})


PAYS_MS = {1: 10.0, 4: 12.0, 16: 20.0}


def test_what_loses_throughput_is_not_recommended() -> None:
    """Its TPOT is 1.5 times as fast at 16, and whole answers take longer: the baseline is, and drafts are off there."""
    fine, lossy = compared(ladder(EAGLE, PAYS_MS)), compared(losing(ladder(EAGLE, PAYS_MS), 16, slower=2.5))
    assert [each.arm for each in fine.choices] == ["eagle3"] * 3
    assert [each.passed_over for each in fine.choices] == [()] * 3
    assert [each.arm for each in lossy.choices] == ["eagle3", "eagle3", "baseline"]
    assert lossy.choices[2].passed_over == ("eagle3",)
    assert lossy.arms[0].faster_up_to == 16
    assert {(each.metric, each.effect) for each in lossy.arms[0].trade_offs if each.level == 16} == {
        ("e2el_s.mean", Effect.LOSS),
        ("output_tokens_per_s", Effect.LOSS),
    }
    assert lossy.schedules[0].draft_tokens_by_batch[-1] == (9, 16, 0)
    assert fine.schedules[0].draft_tokens_by_batch == ((1, 16, 3),)


def test_a_slower_arm_is_not_passed_over() -> None:
    """There is nothing about it that one might have wanted."""
    slow = compared(ladder(EAGLE, {1: 30.0, 4: 33.0, 16: 45.0}))
    assert [(each.arm, each.passed_over) for each in slow.choices] == [("baseline", ())] * 3


def test_an_invalid_baseline_counts_for_nothing() -> None:
    """No more than an invalid arm does."""
    baseline = losing(ladder(BASELINE, {1: 20.0, 4: 22.0, 16: 30.0}), 16, slower=1.0, invalid=True)
    runs = {BASELINE: baseline, EAGLE: ladder(EAGLE, PAYS_MS)}
    bad = compare("made", "concurrency", runs, baseline=BASELINE, expected={})
    (arm,) = bad.arms
    assert [gain.valid for gain in arm.gains.values()] == [True, True, False]
    assert arm.faster_up_to == 4
    assert [each.arm for each in bad.choices] == ["eagle3", "eagle3", "baseline"]
    assert {point.level for point in bad.pareto if point.arm == "baseline"} <= {1, 4}


def test_what_an_invalid_level_says_explains_no_fall() -> None:
    """The speedup falls at 16 alone, and that was not measured."""
    drafting = replace(EAGLE, method="eagle3", draft_tokens=3)
    fading = {1: 10.0, 4: 11.0, 16: 40.0}
    runs = ladder(drafting, fading, tokens_per_step=2)
    assert compared(runs).arms[0].fall is not None
    assert compared(losing(runs, 16, slower=1.0, invalid=True)).arms[0].fall is None


def test_a_fall_is_that_of_the_valid_levels() -> None:
    """Also where the invalid one tells nothing of its steps."""
    drafting = replace(EAGLE, method="eagle3", draft_tokens=3)
    valid = ladder(drafting, {1: 10.0, 4: 18.0}, tokens_per_step=2)
    silent = losing(ladder(drafting, {16: 40.0}), 16, slower=1.0, invalid=True)
    fall = compared([*valid, *silent]).arms[0].fall
    assert fall is not None
    assert (fall.low, fall.high) == (1, 4)


def test_an_invalid_point_is_no_trade() -> None:
    """The most tokens in all came at 16; where that is invalid, no point of it is on the front."""
    arm = ladder(EAGLE, PAYS_MS)
    assert (16, "eagle3") in {(point.level, point.arm) for point in compared(arm).pareto}
    bad = compared(losing(arm, 16, slower=1.0, invalid=True))
    assert (16, "eagle3") not in {(point.level, point.arm) for point in bad.pareto}


def test_an_invalid_level_counts_for_nothing() -> None:
    """Its interval is there to be looked at; nothing is claimed, recommended or concluded from it."""
    bad = compared(losing(ladder(EAGLE, PAYS_MS | {16: 60.0}), 16, slower=1.0, invalid=True))
    (arm,) = bad.arms
    assert arm.gains[16].verdict.speedup.value < 1
    assert (arm.gains[16].verdict.claim, arm.gains[16].worth) == (Claim.NO_DIFFERENCE, Worth.UNKNOWN)
    assert arm.crossover is not None
    assert arm.crossover.low == 4
    assert arm.faster_up_to == 4
    assert bad.choices[2].arm == "baseline"
    assert {(point.arm, point.level) for point in bad.pareto}.isdisjoint({("eagle3", 16)})


def test_the_worth_of_a_level() -> None:
    """TPOT for certain, and nothing decisive against it."""
    worths = [each.worth for each in gains(1.5, 1.0, 0.7, 1.5).values()]
    assert worths == [Worth.PAYS, Worth.UNKNOWN, Worth.COSTS, Worth.PAYS]
    assert gain(1, 1.5, lost=["ttft_s.mean"]).worth is Worth.PAYS
    assert {gain(1, 1.5, lost=[metric]).worth for metric in DECISIVE} == {Worth.COSTS}
    assert gain(1, 1.0, lost=["e2el_s.mean"]).worth is Worth.COSTS
    flat = TradeOff(metric="e2el_s.mean", level=1, effect=Effect.NO_GAIN, ratio=around(1.0))
    assert replace(gain(1, 1.5), trade_offs=(flat,)).worth is Worth.PAYS
    held = replace(flat, effect=Effect.MAY_LOSE, ratio=around(2.5, 3.0))
    assert replace(gain(1, 1.5), trade_offs=(flat, held)).worth is Worth.WITHHELD
