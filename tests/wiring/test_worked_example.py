"""The worked example under `docs/examples/`: its file is one, and its page says what its result says."""

import json
import re
from pathlib import Path

from loadgen.options.experiment import load_experiment

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "cpu"
LADDER = json.loads((EXAMPLE / "result.json").read_text())["ladders"][0]


def table(title: str) -> list[list[str]]:
    """Rows of the page's table whose second column has that title, without the first column."""
    lines = (EXAMPLE / "README.md").read_text().splitlines()
    (head,) = [number for number, line in enumerate(lines) if line.startswith(f"| concurrency | {title} |")]
    rows = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")][1:])
    return rows


def test_its_file_is_an_experiment() -> None:
    """With the arms and the levels of the result."""
    file = load_experiment(EXAMPLE / "experiment.yaml")
    assert list(file.arms) == ["baseline", *(arm["arm"]["name"] for arm in LADDER["arms"])]
    assert list(file.load.concurrency) == [level["level"] for level in LADDER["arms"][0]["levels"]]


def test_the_page_has_the_results_figures() -> None:
    """Speedups with their intervals, and the tokens of a step of n-gram lookup."""
    speedups = [[level["gain"]["verdict"]["speedup"] for level in arm["levels"]] for arm in LADDER["arms"]]
    texts = [[f"{each['value']:.2f} [{each['low']:.2f}, {each['high']:.2f}]" for each in arm] for arm in speedups]
    assert table("n-gram lookup (k = 4)") == [list(level) for level in zip(*texts, strict=True)]
    lookup = LADDER["arms"][0]["levels"]
    lengths = [(level["tokens_per_step"], level["gain"]["break_even_length"]["value"]) for level in lookup]
    assert table("emits") == [[f"{emits:.2f}", f"{needs:.2f}"] for emits, needs in lengths]


def test_the_page_claims_what_the_result_claims() -> None:
    """Every level of the drafters that cost is claimed as slower, none of the lookup's is claimed at all."""
    claims = {
        arm["arm"]["name"]: {level["gain"]["verdict"]["claim"] for level in arm["levels"]} for arm in LADDER["arms"]
    }
    assert claims == {"ngram": {"no difference seen"}, "draft_model": {"slower"}, "eagle": {"slower"}}
    text = (EXAMPLE / "README.md").read_text()
    assert re.search("The draft model and the EAGLE head cost.*for certain.*It is not shown", text, re.DOTALL)
