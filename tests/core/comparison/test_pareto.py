"""Tokens a second for a user against tokens a second in all."""

from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.comparison.pareto import OperatingPoint, operating_point, pareto_front
from tests.core.comparison.factory import World, experiment, with_column


def point(user: float, everyone: float) -> OperatingPoint:
    return OperatingPoint(arm="arm", level=1.0, user_tokens_per_s=user, output_tokens_per_s=everyone)


def test_front_leaves_out_what_another_beats_in_both() -> None:
    """From most for a user to most in all; a point equal to another is one point."""
    best_alone, middle, best_together = point(100, 500), point(60, 2000), point(20, 4000)
    beaten, on_one_side = point(50, 1900), point(60, 1500)
    points = [beaten, best_together, best_alone, on_one_side, middle, middle]
    assert pareto_front(points) == (best_alone, middle, best_together)
    assert pareto_front([]) == ()


def test_a_front_is_of_each_gpu_where_all_say_how_many_they_have() -> None:
    """Four GPUs that give twice as much in all give half as much each; one unknown number, and servers are compared."""
    one, four = replace(point(60, 2000), gpu_tokens_per_s=2000), replace(point(50, 4000), gpu_tokens_per_s=1000)
    assert pareto_front([one, four]) == (one,)
    assert pareto_front([one, four, point(40, 1500)]) == (one, four)


def test_point_is_of_mean_tpot_and_of_the_runs_own_rate() -> None:
    """Geometric means over the repeats; a request without TPOT is left out."""
    cells, _ = experiment(World(), np.random.default_rng(0), repeats=2, requests=20)
    made = [
        replace(with_column(cell, "tpot_s", np.array([tpot, tpot, np.nan])), rates={"output_tokens_per_s": rate})
        for cell, tpot, rate in zip(cells, (0.01, 0.04), (100.0, 400.0), strict=True)
    ]
    found = operating_point(made, gpus=4)
    assert found is not None
    assert found.gpu_tokens_per_s == pytest.approx(50)
    unknown = operating_point(made)
    assert unknown is not None
    assert unknown.gpu_tokens_per_s is None
    assert (found.arm, found.level) == ("baseline", 8.0)
    assert found.user_tokens_per_s == pytest.approx(50)
    assert found.output_tokens_per_s == pytest.approx(200)


def test_a_run_without_a_rate_has_no_point() -> None:
    """Tokens that nobody counted, or no request with a TPOT."""
    cells, _ = experiment(World(), np.random.default_rng(0), repeats=2, requests=20)
    assert operating_point([cells[0], replace(cells[1], rates={"output_tokens_per_s": None})]) is None
    assert operating_point([cells[0], with_column(cells[1], "tpot_s", np.full(20, np.nan))]) is None
