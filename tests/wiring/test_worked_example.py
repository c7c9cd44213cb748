"""The worked example under `docs/examples/`: its files are experiments, and its page says what their results say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from loadgen.options.experiment import load_experiment

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "cpu"
PAGE = (EXAMPLE / "README.md").read_text()


def ladder(result: str) -> dict[str, Any]:
    """The one comparison of a result."""
    (only,) = json.loads((EXAMPLE / result).read_text())["ladders"]
    return dict(only)


FIRST, CLOSE_UP = ladder("result.json"), ladder("closeup.json")


def table(title: str) -> list[list[str]]:
    """Rows of the page's table whose second column has that title, without the first column."""
    lines = PAGE.splitlines()
    (head,) = [number for number, line in enumerate(lines) if line.startswith(f"| concurrency | {title} |")]
    rows = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")][1:])
    return rows


def speedups(arm: dict[str, Any]) -> list[str]:
    """Of TPOT with its interval, by level, as the page writes them."""
    found = [level["gain"]["verdict"]["speedup"] for level in arm["levels"]]
    return [f"{each['value']:.2f} [{each['low']:.2f}, {each['high']:.2f}]" for each in found]


@pytest.mark.parametrize(("file", "found"), [("experiment.yaml", FIRST), ("closeup.yaml", CLOSE_UP)])
def test_its_files_are_experiments(file: str, found: dict[str, Any]) -> None:
    """With the arms and the levels of their results."""
    experiment = load_experiment(EXAMPLE / file)
    assert list(experiment.arms) == ["baseline", *(arm["arm"]["name"] for arm in found["arms"])]
    assert list(experiment.load.concurrency) == [level["level"] for level in found["arms"][0]["levels"]]


def test_the_page_has_the_results_figures() -> None:
    """Speedups with their intervals, the tokens of a step of n-gram lookup, and the crossover."""
    texts = [speedups(arm) for arm in FIRST["arms"]]
    assert table("n-gram lookup (k = 4)") == [list(level) for level in zip(*texts, strict=True)]
    (lookup,) = CLOSE_UP["arms"]
    lengths = [(each["tokens_per_step"], each["gain"]["break_even_length"]["value"]) for each in lookup["levels"]]
    assert table("n-gram lookup close up") == [
        [speedup, f"{emits:.2f}", f"{needs:.2f}"]
        for speedup, (emits, needs) in zip(speedups(lookup), lengths, strict=True)
    ]
    cross = lookup["crossover"]
    assert f"at {cross['level']:.2g} concurrent requests [{cross['low']:.2g}, {cross['high']:.2g}]" in PAGE


def test_the_page_claims_what_the_results_claim() -> None:
    """Drafters that cost are claimed as slower at every level, the lookup as faster at 1 and 2, and close up at 1."""
    claims = {
        arm["arm"]["name"]: [level["gain"]["verdict"]["claim"] for level in arm["levels"]] for arm in FIRST["arms"]
    }
    unseen = "no difference seen"
    assert claims == {
        "ngram": ["faster", "faster", unseen, unseen],
        "draft_model": ["slower"] * 4,
        "eagle": ["slower"] * 4,
    }
    (lookup,) = CLOSE_UP["arms"]
    assert [level["gain"]["verdict"]["claim"] for level in lookup["levels"]] == ["faster", unseen, unseen, unseen]
    assert re.search(
        r"EAGLE head cost\*\*, at every level and for certain.*pays at 1 and 2 in flight for certain"
        r".*Faster is claimed at 1 alone, slower nowhere",
        PAGE,
        re.DOTALL,
    )


def test_the_page_says_how_often_answers_differ() -> None:
    """Words to a difference and shares of answers that differ, between the least and the most of all arms."""
    arms = [arm["losslessness"] for found in (FIRST, CLOSE_UP) for arm in found["arms"]]
    assert not any(each["lossy"] for each in arms)
    words = [each["arm"]["words_to_difference"] for each in arms]
    shares = [1 - each["arm"]["identical_ratio"] for each in arms]
    assert f"one in {min(words):,.0f} to {max(words):,.0f}" in PAGE
    assert f"{min(shares) * 100:.1f} to {max(shares) * 100:.1f} %" in PAGE
