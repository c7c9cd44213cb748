"""Ratios of two arms whose truth is known."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.coverage import grid, of_metrics
from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.ratio import METRICS, MIN_PAIRED_REQUESTS, Note, Ratio, ratio
from loadgen.core.errors import ConfigError
from tests.core.comparison.factory import World, experiment, reordered, with_column

FASTER = World(effect=math.log(0.75), interaction=0.2)


def cells(
    world: World = FASTER, *, seed: int = 1, repeats: int = 3, requests: int = 100
) -> tuple[list[Cell], list[Cell]]:
    return experiment(world, np.random.default_rng(seed), repeats=repeats, requests=requests)


def found(baseline: list[Cell], arm: list[Cell], metric: str = "tpot_s.mean") -> Ratio:
    made = ratio(baseline, arm, metric)
    assert made is not None
    return made


@pytest.mark.parametrize("repeats", [2, 4])
def test_intervals_hold_the_truth_as_often_as_they_say(repeats: int) -> None:
    """Of 80 experiments, 95 % intervals of every metric hold the truth in about that share.

    At most four standard deviations of chance below 95 % for a metric, and 93 % to 97.5 % over all of them.
    """
    hits: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for world in (World(start=0.02), World(effect=math.log(0.75), start=0.05, interaction=0.2)):
        for metric, each in of_metrics(repeats, 60, world, 40).items():
            hits[metric] += sum(hit for hit, _ in each)
            of[metric] += len(each)
    assert set(of) == {metric for metric in METRICS if not metric.endswith("p99")}
    assert all(hits[metric] / of[metric] > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 80) for metric in of)
    assert 0.93 < hits.total() / of.total() < 0.975


@pytest.mark.slow
def test_intervals_hold_the_truth_over_the_whole_grid() -> None:
    """93 % to 97.5 % of the intervals of every metric do, over all settings; and in no setting by far fewer of 40."""
    shares: dict[str, list[float]] = {metric: [] for metric in METRICS}
    for repeats, requests, world in grid():
        for metric, each in of_metrics(repeats, requests, world, 40).items():
            shares[metric].append(float(np.mean([hit for hit, _ in each])))
    for metric, given in shares.items():
        assert 0.93 <= np.mean(given) <= 0.975, metric
        assert min(given) >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / 40), metric


def test_a_baseline_against_itself_shows_no_effect() -> None:
    """Of 100 experiments without a difference, at most nine intervals leave out 1; a fair one does so in five."""
    world = World(start=0.03)
    estimates = [found(*cells(world, seed=seed, requests=60)).estimate for seed in range(100)]
    assert sum(each.low > 1 or each.high < 1 for each in estimates) <= 9


@pytest.mark.parametrize("metric", ["tpot_s.mean", "e2el_s.p50", "output_tokens_per_s"])
def test_intervals_shrink_with_requests_and_with_starts(metric: str) -> None:
    """Sixteen times the requests: about a quarter of the width, when nothing else varies; and more starts say more."""
    calm = World(start=0.0)

    def width(world: World, **size: int) -> float:
        estimates = [found(*cells(world, seed=seed, **size), metric).estimate for seed in range(12)]
        return float(np.mean([math.log(each.high / each.low) for each in estimates]))

    assert width(calm, requests=960) == pytest.approx(width(calm, requests=60) / 4, rel=0.35)
    assert width(World(start=0.05), repeats=6) < 0.6 * width(World(start=0.05), repeats=2)


def test_throughput_follows_latency_in_a_closed_loop() -> None:
    """With the same tokens, tokens a second rise as the mean latency falls, and the interval with it."""
    baseline, arm = cells()
    latency, rate = found(baseline, arm, "e2el_s.mean"), found(baseline, arm, "output_tokens_per_s")
    assert rate.speedup.estimate().low == pytest.approx(latency.speedup.estimate().low)
    assert rate.estimate.value == pytest.approx(1 / latency.estimate.value)


def test_a_failed_request_leaves_every_run_and_is_counted() -> None:
    """One run lacks two of a hundred requests, another a third: three have left, and their values change nothing."""
    baseline, arm = cells()
    lost = arm[1].columns["tpot_s"].copy()
    lost[[3, 5]] = np.nan
    arm[1] = with_column(arm[1], "tpot_s", lost)
    late = baseline[0].columns["tpot_s"].copy()
    late[8] = np.nan
    baseline[0] = with_column(baseline[0], "tpot_s", late)
    made = found(baseline, arm)
    assert made.left_out_ratio == pytest.approx(0.03)
    assert made.log_ratio.n == 97
    for place in (3, 5, 8):
        other = baseline[2].columns["tpot_s"].copy()
        other[place] = 1e6
        assert found([*baseline[:2], with_column(baseline[2], "tpot_s", other)], arm) == made


def test_order_of_repeats_is_no_matter() -> None:
    """The cells of an arm come in the order in which they ran, which ABBA turns round."""
    baseline, arm = cells()
    assert found(baseline[::-1], arm) == found(baseline, arm)


def test_different_requests_are_refused() -> None:
    """With the counts, so that a reader sees which run is cut, and what to do."""
    baseline, arm = cells()
    arm[2] = reordered(arm[2], range(90))
    with pytest.raises(ConfigError, match=r"'arm' at level 8, repeat 2.*of 100 and 90 they have 90 in common"):
        ratio(baseline, arm, "tpot_s.mean")


def test_cells_that_do_not_belong_together_are_refused() -> None:
    """Another level, a repeat that only one arm has, one that is there twice, none at all."""
    baseline, arm = cells()
    with pytest.raises(ConfigError, match="not of one level"):
        ratio(baseline, [*arm[:2], replace(arm[2], level=16.0)], "tpot_s.mean")
    for first, second in ((baseline, arm[:2]), ([baseline[0]] * 2, [arm[0]] * 2), ([], [])):
        with pytest.raises(ConfigError, match="one run of each arm for each repeat"):
            ratio(first, second, "tpot_s.mean")


@pytest.mark.parametrize("metric", ["tpot_s.mean", "tpot_s.p50", "tpot_s.p99", "requests_per_s"])
def test_too_few_requests_have_no_ratio(metric: str) -> None:
    """Nothing is printed that the sample cannot carry."""
    least = MIN_PAIRED_REQUESTS[metric.partition(".")[2] or "mean"]
    assert ratio(*cells(requests=least), metric) is not None
    assert ratio(*cells(requests=least - 1), metric) is None


def test_one_start_says_what_it_cannot_see() -> None:
    """The interval is there, with a note; two starts need none."""
    assert found(*cells(repeats=1)).notes == (Note.ONE_START,)
    assert found(*cells(repeats=2)).notes == ()


def test_a_rate_of_zero_or_none_has_no_ratio() -> None:
    """Nothing good in one run: no ratio, and no infinity."""
    baseline, arm = cells()
    for rate in (0.0, None):
        without = replace(arm[0], rates={**arm[0].rates, "goodput_rps": rate})
        assert ratio(baseline, [without, *arm[1:]], "goodput_rps") is None
        assert ratio(baseline, [without, *arm[1:]], "requests_per_s") is not None


def test_goodput_of_requests_that_were_all_left_out_has_no_ratio() -> None:
    """The run has good requests, but none that every run completed: nothing says how far the rate is chance."""
    baseline, arm = cells()
    latency = arm[0].columns["e2el_s"].copy()
    latency[baseline[1].good] = np.nan
    assert ratio(baseline, [with_column(arm[0], "e2el_s", latency), *arm[1:]], "goodput_rps") is None


def test_rates_of_an_open_loop_are_noted_and_need_starts() -> None:
    """Both arms serve what arrives; and one start says nothing of how such a rate varies."""
    baseline, arm = ([replace(cell, closed_loop=False) for cell in side] for side in cells())
    assert found(baseline, arm, "requests_per_s").notes == (Note.FIXED_RATE,)
    assert found(baseline, arm, "tpot_s.mean").notes == ()
    assert ratio(baseline[:1], arm[:1], "requests_per_s") is None


def test_how_long_requests_take_bears_on_rates_of_a_closed_loop_alone() -> None:
    """At a fixed rate of arrivals tokens a second follow what is asked for; slots are free when requests end."""
    closed = cells()
    opened = [[replace(cell, closed_loop=False) for cell in side] for side in closed]
    assert found(*closed, "output_tokens_per_s").log_ratio.request_variance > 0
    assert found(*opened, "output_tokens_per_s").log_ratio.request_variance == pytest.approx(0, abs=1e-12)


def test_speedup_is_above_one_where_the_arm_is_better() -> None:
    """Lower latency and higher throughput."""
    baseline, arm = cells()
    for metric in ("tpot_s.mean", "e2el_s.p50", "output_tokens_per_s"):
        assert found(baseline, arm, metric).speedup.estimate().value > 1.2
        assert found(arm, baseline, metric).speedup.estimate().value < 0.85
