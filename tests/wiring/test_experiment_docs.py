"""What `docs/experiments.md` says is so."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from loadgen.core.experiment.plan import Order, orders
from loadgen.options.experiment import ArmSection, ExperimentFile, LevelSection, LoadSection, WorkloadSection
from loadgen.wiring.experiment_plan import START_S, TPOT_S

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "experiments.md").read_text()


@pytest.mark.parametrize("section", [ExperimentFile, WorkloadSection, LoadSection, LevelSection, ArmSection])
def test_every_field_is_explained(section: type[BaseModel]) -> None:
    """By its name as code, alone or at the head of an example."""
    assert [name for name in section.model_fields if not re.search(rf"`{name}[`:]", TEXT)] == []


def test_every_example_is_named() -> None:
    """And no other."""
    named = set(re.findall(r"\.\./examples/([\w-]+\.yaml)", TEXT))
    assert named == {path.name for path in (ROOT / "examples").glob("*.yaml")}


def test_the_orders_shown_are_those_that_are_planned() -> None:
    """Letter by letter."""
    rows = re.findall(r"^\| ((?:[A-D] )+)\| ([A-D, ]+) \| ([A-D, ]+) \|$", TEXT, re.MULTILINE)
    assert [row[0].split() for row in rows] == [list("AB"), list("ABC"), list("ABCD")]
    for arms, two, three in rows:
        for text, repeats in ((two, 2), (three, 3)):
            shown = [order.split() for order in text.split(", ")]
            found = orders(len(arms.split()), repeats, Order.ABBA)
            assert shown == [["ABCD"[arm] for arm in order] for order in found]


def test_the_guesses_are_those_that_are_taken() -> None:
    """Starts and tokens."""
    assert f"{TPOT_S * 1000:.0f} ms a token" in TEXT.replace("\n", " ")
    starts = f"{START_S['sim']:.0f} s by `sim`, {START_S['command']:.0f} s by `command` or `profile`"
    assert starts in TEXT.replace("\n", " ")
    assert START_S["command"] == START_S["profile"]
