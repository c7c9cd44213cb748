"""Properties of ratios, verdicts and crossovers over generated experiments."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.crossover import NoCrossover, crossover
from loadgen.core.comparison.draft_length import Basis, draft_lengths, draft_tokens_by_batch
from loadgen.core.comparison.gain import Worth
from loadgen.core.comparison.ratio import METRICS, Ratio, ratio
from loadgen.core.comparison.verdict import Claim, LevelVerdict, verdicts
from loadgen.core.simulation.speculator import check_ranges
from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.log_ratio import LogRatio
from tests.core.comparison.factory import World, experiment, with_column
from tests.core.comparison.gains import gains as given_gains

metrics = st.sampled_from([metric for metric in METRICS if not metric.endswith("p99")])
speedups = st.lists(st.tuples(st.floats(0.3, 3.0), st.floats(1.0, 1.5)), min_size=1, max_size=8)


@st.composite
def experiments(draw: st.DrawFn) -> tuple[list[Cell], list[Cell]]:
    """Both arms of a small experiment."""
    spreads = st.floats(0.0, 0.3)
    world = World(effect=draw(st.floats(-1, 1)), start=draw(spreads), interaction=draw(spreads), noise=draw(spreads))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return experiment(world, rng, repeats=draw(st.integers(1, 4)), requests=draw(st.integers(50, 70)))


def estimate(baseline: list[Cell], arm: list[Cell], metric: str) -> Estimate | None:
    found = ratio(baseline, arm, metric)
    return None if found is None else found.estimate


@settings(deadline=None, max_examples=25)
@given(experiments(), metrics, st.randoms(use_true_random=False))
def test_the_order_of_requests_changes_nothing(
    arms: tuple[list[Cell], list[Cell]], metric: str, random: Random
) -> None:
    """The same requests in another order, in every run: the same ratio but for the order of a sum."""
    order = list(range(len(arms[0][0].seq)))
    random.shuffle(order)
    first = estimate(*arms, metric)
    second = estimate(*([_renamed(cell, order) for cell in arm] for arm in arms), metric)
    _same(first, second)


@settings(deadline=None, max_examples=25)
@given(experiments(), metrics)
def test_exchanged_arms_turn_the_ratio_upside_down(arms: tuple[list[Cell], list[Cell]], metric: str) -> None:
    """Interval and all: which arm is called the baseline decides nothing."""
    there, back = estimate(*arms, metric), estimate(arms[1], arms[0], metric)
    if there is None or back is None:
        assert there is back
        return
    assert there.low <= there.value <= there.high
    assert (back.low, back.value, back.high) == pytest.approx((1 / there.high, 1 / there.value, 1 / there.low))


@settings(deadline=None, max_examples=25)
@given(experiments(), st.floats(1e-3, 1e3), st.sampled_from(["tpot_s.mean", "e2el_s.p50", "ttft_s.mean"]))
def test_units_cancel(arms: tuple[list[Cell], list[Cell]], unit: float, metric: str) -> None:
    """Seconds or milliseconds."""
    name = metric.partition(".")[0]
    scaled = [[with_column(cell, name, cell.columns[name] * unit) for cell in arm] for arm in arms]
    _same(estimate(*arms, metric), estimate(scaled[0], scaled[1], metric))


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(-0.5, 0.5), st.floats(0.001, 0.3)), min_size=1, max_size=8))
def test_claims_lie_between_single_levels_and_bonferroni(effects: list[tuple[float, float]]) -> None:
    """What is claimed leaves out 1 at 95 %; what leaves it out at 95 % for all levels at once is claimed."""
    ratios = [
        Ratio(
            metric="requests_per_s",
            level=float(place + 1),
            log_ratio=LogRatio(log=log, start_variance=error**2, request_variance=0.0, degrees=4, n=100),
            left_out_ratio=0.0,
            notes=(),
        )
        for place, (log, error) in enumerate(effects)
    ]
    for each, verdict in zip(ratios, verdicts(ratios), strict=True):
        claimed = verdict.claim is not Claim.NO_DIFFERENCE
        assert claimed <= _leaves_out_one(each.estimate)
        assert claimed >= _leaves_out_one(each.log_ratio.estimate(1 - 0.05 / len(ratios)))
        assert not claimed or (verdict.claim is Claim.FASTER) == (verdict.speedup.value > 1)


@settings(deadline=None)
@given(speedups, st.lists(st.floats(1e-3, 0.1), min_size=8, max_size=8))
def test_a_crossover_lies_within_its_bounds(given_speedups: list[tuple[float, float]], tpot_s: list[float]) -> None:
    """Either a level or a reason; bounds in order, inside the ladder, on either side of the level."""
    levels = [2.0**place for place in range(len(given_speedups))]
    ladder = [_judged(level, *each) for level, each in zip(levels, given_speedups, strict=True)]
    found = crossover(ladder, tpot_s[: len(ladder)])
    assert (found.level is None) != (found.reason is None)
    low, high = found.low or levels[0], found.high or levels[-1]
    assert levels[0] <= low <= levels[-1]
    assert levels[0] <= high <= levels[-1]
    if found.level is not None:
        assert low * (1 - 1e-12) <= found.level <= high * (1 + 1e-12)
    if found.reason in (NoCrossover.NOWHERE, NoCrossover.UNSEEN):
        assert found.low is None


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 8), st.lists(st.floats(0.5, 2.0), min_size=3, max_size=3), min_size=1))
def test_draft_lengths_are_ranges_that_a_server_takes(ladders: dict[int, list[float]]) -> None:
    """From 1 to the highest level without a gap, no two neighbours alike, drafts of a length that was tried or none."""
    levels = (1.0, 8.0, 48.0)
    gains = {tokens: given_gains(*values, levels=levels) for tokens, values in ladders.items()}
    lengths = draft_lengths(levels, gains)
    ranges = draft_tokens_by_batch(lengths)
    check_ranges(ranges, 8)
    assert ranges[-1][1] == 48
    assert all(first[2] != second[2] for first, second in pairwise(ranges))
    assert {tokens for *_, tokens in ranges} <= {0, *ladders}
    for each in lengths:
        worths = {gains[tokens][each.level].worth for tokens in gains}
        assert (each.basis is Basis.PAYS) == (Worth.PAYS in worths)
        assert (each.basis is Basis.COSTS) == (worths == {Worth.COSTS})
        assert each.draft_tokens == 0 or each.basis in (Basis.PAYS, Basis.BETWEEN)


def _around(value: float, factor: float) -> Estimate:
    return Estimate(value=value, low=value / factor, high=value * factor, confidence_ratio=0.95, method="given", n=100)


def _judged(level: float, value: float, factor: float) -> LevelVerdict:
    """A level that is judged by its own interval alone."""
    speedup = _around(value, factor)
    claim = (Claim.FASTER if value > 1 else Claim.SLOWER) if _leaves_out_one(speedup) else Claim.NO_DIFFERENCE
    return LevelVerdict(level=level, speedup=speedup, claim=claim, noise_floor=None)


def _leaves_out_one(found: Estimate) -> bool:
    return found.low > 1 or found.high < 1


def _renamed(cell: Cell, order: list[int]) -> Cell:
    """The cell as if its requests had been sent in another order."""
    return replace(
        cell,
        good=cell.good[order],
        columns={name: values[order] for name, values in cell.columns.items()},
    )


def _same(first: Estimate | None, second: Estimate | None) -> None:
    if first is None or second is None:
        assert first is second
        return
    assert (first.low, first.value, first.high) == pytest.approx((second.low, second.value, second.high), rel=1e-6)
