"""Break-even length from arms of forced acceptance."""

import math
from dataclasses import replace

import numpy as np
import pytest

from loadgen.core.comparison.break_even import break_even
from loadgen.core.comparison.cell import Cell
from loadgen.core.simulation.speedup import plain_step_s, speculative_step_s
from loadgen.core.simulation.step_time import LLAMA_8B_ON_H100, NGRAM_TARGET_RATIO, Drafting
from tests.core.comparison.factory import World, experiment

STEP_RATIO, FORCED_LENGTH = 1.4, 4.0


def arms(accepted: tuple[float, float, float], *, excess: float = 1.0, **size: int) -> list[list[Cell]]:
    """Baseline, arm and forced arm of a server whose speculative step takes 1.4 plain ones; the arm's `excess` more."""
    size = {"repeats": 3, "requests": 200} | size
    plain = World(start=0.01)
    baseline, forced = experiment(
        replace(plain, effect=math.log(STEP_RATIO / FORCED_LENGTH)), np.random.default_rng(1), **size
    )
    arm = []
    for place, length in enumerate(accepted):
        world = replace(plain, effect=math.log(STEP_RATIO * excess / length))
        cell = experiment(world, np.random.default_rng(1), **size)[1][place]
        arm.append(replace(cell, tokens_per_step=length))
    return [baseline, arm, forced]


def test_break_even_is_the_ratio_of_the_steps() -> None:
    """1.4 whatever length was forced; 2.1 tokens a step then speed up by 1.5, and nothing is left to explain."""
    found = break_even(*arms((2.1, 2.1, 2.1)), forced_length=FORCED_LENGTH)
    assert found is not None
    assert found.length.low < STEP_RATIO < found.length.high
    assert found.tokens_per_step == pytest.approx(2.1)
    assert found.predicted_speedup == pytest.approx(1.5, rel=0.05)
    assert found.residual is not None
    assert found.residual.low < 1 < found.residual.high


def test_what_steps_do_not_explain_is_in_the_residual() -> None:
    """Steps of the arm that take 20 % longer than the forced ones: 1/1.2 of the predicted speedup is left."""
    found = break_even(*arms((2.1, 2.1, 2.1), excess=1.2), forced_length=FORCED_LENGTH)
    assert found is not None
    assert found.residual is not None
    assert found.residual.high < 1
    assert found.residual.value == pytest.approx(1 / 1.2, rel=0.03)


def test_acceptance_that_differs_from_start_to_start_is_no_residual() -> None:
    """Each start's TPOT is taken with its own length."""
    same = break_even(*arms((2.1, 2.1, 2.1)), forced_length=FORCED_LENGTH)
    varied = break_even(*arms((1.6, 2.1, 2.8)), forced_length=FORCED_LENGTH)
    assert same is not None
    assert varied is not None
    assert same.residual is not None
    assert varied.residual is not None
    assert varied.tokens_per_step == pytest.approx((1.6 * 2.1 * 2.8) ** (1 / 3))
    assert varied.residual.value == pytest.approx(same.residual.value)
    assert varied.residual.high / varied.residual.low == pytest.approx(same.residual.high / same.residual.low, rel=1e-6)


def test_without_acceptance_there_is_still_a_break_even_length() -> None:
    """It needs none; the prediction does, in every run."""
    baseline, arm, forced = arms((2.1, 2.1, 2.1))
    found = break_even(
        baseline, [arm[0], replace(arm[1], tokens_per_step=None), arm[2]], forced, forced_length=FORCED_LENGTH
    )
    assert found is not None
    assert found.length.value == pytest.approx(STEP_RATIO, rel=0.05)
    assert (found.tokens_per_step, found.predicted_speedup, found.residual) == (None, None, None)


def test_too_few_requests_have_no_break_even_length() -> None:
    """As they have no ratio."""
    assert break_even(*arms((2.1, 2.1, 2.1), requests=5), forced_length=FORCED_LENGTH) is None


BATCHES, CONTEXT_TOKENS, DRAFTS = (1, 8, 32, 96), 512, 5
LOOKUP = Drafting(target_ratio=NGRAM_TARGET_RATIO)


def step_s(batch: int, coverage_ratio: float) -> float:
    """Seconds of a step of which such a share of the requests has drafts, by the step-time model."""
    return speculative_step_s(
        LLAMA_8B_ON_H100,
        LOOKUP,
        batch=batch,
        context_tokens=CONTEXT_TOKENS,
        draft_tokens=DRAFTS,
        coverage_ratio=coverage_ratio,
    )


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("coverage_ratio", [0.15, 0.5, 1.0])
def test_lookup_breaks_even_by_the_steps_that_it_drafts_on(batch: int, coverage_ratio: float) -> None:
    """The step-time model knows what a step has to emit when a share of them drafts. Forced arms draft on every step;
    scaled to that share they find it within their interval, and nothing is left to explain. Unscaled they would ask for
    more than is needed wherever verifying costs something."""
    plain = plain_step_s(LLAMA_8B_ON_H100, batch=batch, context_tokens=CONTEXT_TOKENS)
    truth, emitted = step_s(batch, coverage_ratio) / plain, 1 + coverage_ratio * 1.6
    size = {"repeats": 3, "requests": 200}
    quiet = World(start=0.01)
    cells = [
        experiment(replace(quiet, effect=math.log(tpot_s / plain)), np.random.default_rng(1), **size)
        for tpot_s in (step_s(batch, coverage_ratio) / emitted, step_s(batch, 1.0))
    ]
    baseline, arm, forced = cells[0][0], [replace(cell, tokens_per_step=emitted) for cell in cells[0][1]], cells[1][1]
    found = break_even(baseline, arm, forced, forced_length=1, drafting_share=coverage_ratio)
    assert found is not None
    assert found.length.low < truth < found.length.high
    assert found.length.value == pytest.approx(truth, rel=0.01)
    assert found.predicted_speedup == pytest.approx(emitted / truth, rel=0.01)
    assert found.residual is not None
    assert found.residual.low < 1 < found.residual.high
    assert found.residual.value == pytest.approx(1, rel=0.01)
    unscaled = break_even(baseline, arm, forced, forced_length=1)
    assert unscaled is not None
    if coverage_ratio < 1 and batch >= 32:
        assert unscaled.length.low > truth


def test_steps_that_never_draft_are_plain_ones() -> None:
    """A share of 0 needs one token a step, whatever drafts would cost."""
    baseline, arm, forced = arms((1.0, 1.0, 1.0))
    found = break_even(baseline, arm, forced, forced_length=FORCED_LENGTH, drafting_share=0.0)
    assert found is not None
    assert found.length.value == pytest.approx(1)
