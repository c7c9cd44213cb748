"""The figures that docs/prediction.md prints are those of the code."""

import re
from pathlib import Path

import pytest

from loadgen.core.simulation.speculator import Method
from loadgen.core.simulation.survival import from_conditional
from loadgen.core.simulation.workloads import WORKLOADS
from loadgen.options.predict import PredictOptions
from loadgen.wiring.predict import predicted

DOC = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text(encoding="utf-8")
TARGETS = {
    "Llama-3.1-8B": {"target": "llama-3.1-8b"},
    "Llama-3-70B": {"target": "llama-3.1-70b", "gpus": 4},
    "Qwen3-8B": {"target": "qwen3-8b"},
}
SETS = {workload.dataset: name for name, workload in WORKLOADS.items()}
METHODS = {"EAGLE": "eagle", "draft model": "draft_model"}
CASES = re.findall(r"^\| ([\w ]+), ([\w.-]+), (\w+), b = (\d+) \| ([\d.]+) \| ([\d.]+) \|$", DOC, re.MULTILINE)


@pytest.mark.parametrize("case", CASES, ids=[" ".join(case[:4]) for case in CASES])
def test_expected_beside_measured(case: tuple[str, ...]) -> None:
    """What the table of trust calls expected is what the command prints, and it is not far from what was measured."""
    method, target, dataset, batch, measured, expected = case
    options = PredictOptions(
        method=METHODS[method], workload=SETS[dataset], draft_tokens=3, concurrency=[int(batch)], **TARGETS[target]
    )
    speedup = predicted(options).points[0].speedup
    assert f"{speedup:.2f}" == expected
    assert speedup == pytest.approx(float(measured), rel=0.1)


def test_every_row_of_the_table_was_read() -> None:
    """Seven cases."""
    assert len(CASES) == 7


def test_the_table_of_workloads() -> None:
    """Lengths and tokens a step, of EAGLE and of n-gram lookup with three draft tokens."""
    rows = re.findall(r"^\| ([\w-]+) \| ([\w/]+) \| (\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", DOC, re.MULTILINE)
    found = [
        (
            name,
            workload.dataset,
            str(workload.prompt_tokens),
            str(workload.output_tokens),
            f"{workload.survival(Method.EAGLE).mean_length(3):.2f}",
            f"{1 + sum(from_conditional(workload.ngram, 3)):.2f}",
        )
        for name, workload in WORKLOADS.items()
    ]
    assert rows == found
