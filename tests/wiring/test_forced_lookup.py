"""Forced runs explain a method that drafts on a share of its steps, although they draft on all of theirs."""

from pathlib import Path

import pytest

from benchmarks.crossover import NGRAM, OUTPUT, PROMPT, SERVER, experiment_file
from loadgen.core.simulation.prediction import closed_loop
from loadgen.options.predict import PredictOptions
from loadgen.options.resolve import resolve
from loadgen.wiring.experiment_report import experiment_result
from loadgen.wiring.predict import predicted
from tests.wiring.virtual_experiments import Chance, virtual_experiment

LEVELS = (16, 64)


@pytest.mark.slow
def test_lookup_needs_what_its_own_steps_cost(tmp_path: Path) -> None:
    """Simulated n-gram lookup drafts on a third of its steps, and on every one with nothing accepted. What a step has
    to emit is found as the step model has it for a third, beside the prompts of others, within 5 %. The speedup that
    follows is the one measured, but for those prompts; as forced, a step would need 1.4 times as many tokens at 64."""
    level = {"num_requests": 160}
    path = experiment_file(
        tmp_path, 3, {"baseline": SERVER, "ngram": SERVER | NGRAM}, LEVELS, explain="forced", repeats=2, level=level
    )
    (found,) = experiment_result(virtual_experiment(path, tmp_path / "out", Chance(seed=3)).path).ladders
    prompt, output = (int(text.partition(":")[0]) for text in (PROMPT, OUTPUT))
    asked = {"concurrency": LEVELS, "input_tokens": prompt, "output_tokens": output}
    model = predicted(resolve(PredictOptions, SERVER | NGRAM | asked, environment={}))
    assert model.step_time is not None
    prompt_s = prompt * model.step_time.per_token_s
    for level, point in zip(found.arms[0].levels, model.points, strict=True):
        plain_s, own_s = (
            closed_loop(point.concurrency, step_s, 1.0, prompt_s, output)[0] for step_s in (point.t_ar_s, point.t_sd_s)
        )
        why = level.explanation
        assert why is not None
        assert why.forced_coverage_ratio == 1
        assert why.drafting_share == pytest.approx(model.coverage_ratio, rel=0.05)
        assert why.needed is not None
        assert why.needed.length.value == pytest.approx(own_s / plain_s, rel=0.05)
        assert why.needed.residual is not None
        assert 0.9 < why.needed.residual.value < 1.02
        as_forced = 1 + (why.needed.length.value - 1) / why.drafting_share
        assert level.level < 64 or as_forced > 1.4 * why.needed.length.value
