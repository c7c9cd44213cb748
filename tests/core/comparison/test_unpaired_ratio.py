"""Ratios of two runs that sent other requests."""

import math
from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.comparison.cell import Cell
from loadgen.core.comparison.ratio import Note, unpaired_ratio
from tests.core.comparison.factory import World, experiment, true_ratios

WORLD = World(effect=math.log(0.75), interaction=0.2, start=0.0)


def drawn(seed: int, *, requests: int = 100) -> tuple[Cell, Cell]:
    """A run of the baseline, and one of the arm with requests of its own."""
    baseline, _ = experiment(WORLD, np.random.default_rng(seed), repeats=1, requests=requests)
    _, arm = experiment(WORLD, np.random.default_rng(seed + 10_000), repeats=1, requests=requests)
    return baseline[0], arm[0]


@pytest.mark.parametrize("metric", ["tpot_s.mean", "requests_per_s"])
def test_its_interval_holds_the_truth_as_often_as_it_says(metric: str) -> None:
    """In 95 % of 120 pairs, give or take four standard deviations of chance."""
    truth, hits = true_ratios(WORLD, requests=100_000)[metric], 0
    for seed in range(120):
        found = unpaired_ratio(*drawn(seed), metric)
        assert found is not None
        hits += found.estimate.low <= truth <= found.estimate.high
    assert 0.95 - 4 * math.sqrt(0.95 * 0.05 / 120) < hits / 120 < 1


def test_it_says_what_it_cannot_see() -> None:
    """One start of each, and other requests."""
    found = unpaired_ratio(*drawn(1), "tpot_s.mean")
    assert found is not None
    assert found.notes == (Note.ONE_START, Note.OTHER_REQUESTS)


def test_rates_of_an_open_loop_have_none() -> None:
    """One start says nothing of how they vary; latencies are as ever."""
    baseline, arm = (replace(cell, closed_loop=False) for cell in drawn(1))
    assert unpaired_ratio(baseline, arm, "requests_per_s") is None
    assert unpaired_ratio(baseline, arm, "tpot_s.mean") is not None


@pytest.mark.parametrize(("metric", "least"), [("tpot_s.mean", 10), ("tpot_s.p90", 100), ("tpot_s.p95", 200)])
def test_too_few_requests_on_either_side_have_none(metric: str, least: int) -> None:
    """As where requests are paired."""
    enough, few = drawn(1, requests=least), drawn(1, requests=least - 1)
    assert unpaired_ratio(*enough, metric) is not None
    assert unpaired_ratio(enough[0], few[1], metric) is None
    assert unpaired_ratio(few[0], enough[1], metric) is None
