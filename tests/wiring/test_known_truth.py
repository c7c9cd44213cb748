"""Experiments on servers that are known exactly: what is true is found, and what is not true is not claimed.

Few seeds of what `benchmarks/crossover.py` does with many.
"""

import math
from functools import cache
from pathlib import Path

import pytest

from benchmarks.crossover import (
    CROSSOVERS,
    EAGLE3,
    SERVER,
    closed_form_crossover,
    experiment_file,
    find_claims,
    find_crossover,
    judge_crossover,
    true_crossover,
    true_speedup,
)
from loadgen.cli.app import run_command_line
from loadgen.core.comparison.arms import ArmsComparison
from loadgen.wiring.experiment_report import experiment_result
from tests.wiring.virtual_experiments import Chance, virtual_experiment

STEEP = CROSSOVERS[0]
ATTEMPTS = 3


@cache
def steep_truth() -> float:
    """From simulations that no experiment takes part in."""
    return true_crossover(
        STEEP, [true_speedup(STEEP.arm, concurrency, seed=1, requests=3_000) for concurrency in STEEP.about]
    )


@pytest.mark.slow
def test_the_truth_of_simulations_is_that_of_the_formula() -> None:
    """Two ways to the same crossover: many requests at single concurrencies, and the closed form of a mean request."""
    closed_form = closed_form_crossover(STEEP)
    assert closed_form is not None
    assert steep_truth() == pytest.approx(closed_form, rel=0.1)


@pytest.mark.slow
def test_an_experiment_finds_a_crossover_that_is_known() -> None:
    """Within its bounds, which are narrower than the step from one level to the next."""
    for seed in (1, 2, 3):
        found = find_crossover(STEEP, seed)
        assert judge_crossover(steep_truth(), found)
        assert found["high"] / found["low"] < 2


@pytest.mark.slow
def test_of_arms_that_are_alike_nothing_is_claimed() -> None:
    """Neither speed nor crossover nor losslessness, though greedy answers differ from start to start by near ties; and
    an arm that changes one token in a hundred is caught beside it.
    """
    for seed in (1, 2):
        found = find_claims("lossy", seed)
        assert found["claims"] == []
        assert found["caught"]


def test_the_same_seed_is_the_same_experiment(tmp_path: Path) -> None:
    """Another one is not."""
    path = experiment_file(
        tmp_path, 1, {"baseline": SERVER, "arm": SERVER | EAGLE3}, (4,), level={"num_requests": 20}, repeats=1
    )

    def tpot_s(name: str, seed: int) -> list[float | None]:
        folder = virtual_experiment(path, tmp_path / name, Chance(seed=seed, start=0.01))
        (ladder,) = experiment_result(folder.path).ladders
        return [level.tpot_s for arm in ladder.ladders for level in arm.levels]

    first = tpot_s("first", 1)
    assert tpot_s("second", 1) == first
    assert tpot_s("third", 2) != first


@pytest.mark.slow
def test_in_real_time_the_command_finds_it_too(tmp_path: Path) -> None:
    """Through servers, transport and client: the crossover of the model lies within what the report says of it.

    A machine too busy to keep the servers' time measures its own lateness, which the report says. Then it is tried
    again; one that is busy each time cannot show it, and that is no success.
    """
    ladder = next(filter(None, (punctual(tmp_path, attempt) for attempt in range(ATTEMPTS))), None)
    assert ladder is not None, f"the simulated servers were late in each of {ATTEMPTS} attempts: the machine is busy"
    found = ladder.arms[0].crossover
    assert found is not None
    assert found.level is not None
    assert (found.low or 0) <= steep_truth() <= (found.high or math.inf)


def punctual(folder: Path, attempt: int) -> ArmsComparison | None:
    """What the experiment comes to in real time; None where its servers were late."""
    path = experiment_file(
        folder,
        1,
        {"baseline": SERVER, "arm": SERVER | EAGLE3},
        (8, 32),
        level={"num_requests_by_level": {8: 40, 32: 128}},
        repeats=2,
        cooldown=0,
    )
    out = folder / f"attempt-{attempt}"
    assert run_command_line(["experiment", "run", str(path), "--out", str(out), "--quiet"]) in (0, 3)
    (result,) = out.iterdir()
    (ladder,) = experiment_result(result).ladders
    levels = [level for arm in ladder.ladders for level in arm.levels]
    late = any(finding.kind == "simulator_late" for level in levels for finding in level.measurement.findings)
    return None if late else ladder
