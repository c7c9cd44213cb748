"""What the page shows of a result, made of the results that the reports are tested with."""

import json
from typing import Any

from loadgen.adapters.store.files import Scrubber
from loadgen.service.child.view import View, view_of_experiment, view_of_run, view_of_sweep
from tests.report.comparisons import explained_arms, three_arms
from tests.report.made.ladders import hostile_ladder, ladder
from tests.report.made.runs import hostile_analysis, rate_analysis


def as_told(view: View) -> list[dict[str, Any]]:
    """Its parts as strict JSON."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    told = json.loads(Scrubber().encode(view), parse_constant=refused)
    assert told["schema"] == "loadgen.view/1"
    parts: list[dict[str, Any]] = told["parts"]
    return parts


def test_a_run_has_its_verdict_in_words_and_its_charts() -> None:
    """The latencies by percentile first, then how it went over time."""
    (part,) = as_told(view_of_run(rate_analysis()))
    assert part["headline"]["kind"] in ("valid", "warning", "invalid")
    assert part["charts"][0]["id"] == "quantiles"
    assert {"time-tokens", "time-ttft"} <= {chart["id"] for chart in part["charts"]}


def test_a_ladder_says_which_levels_may_not_be_believed() -> None:
    """As its report does."""
    (part,) = as_told(view_of_sweep(ladder()))
    assert part["headline"]["kind"] == "invalid"
    assert part["headline"]["words"].startswith("✗ Invalid at")


def test_an_experiment_says_what_to_run_and_draws_speed_and_acceptance() -> None:
    """A part for each ladder of load, with the answer in words, a sentence an arm, and bands around the lines."""
    parts = as_told(view_of_experiment((three_arms(), explained_arms())))
    assert len(parts) == 2
    for part in parts:
        assert part["answer"]
        assert part["said"][0][1].endswith(".")
        speedup = part["charts"][0]
        assert any(line["low"] is not None for line in speedup["lines"])
        assert part["tables"][0][0] == "What to run"


def test_every_chart_has_something_to_draw() -> None:
    """Also those of a run in which nothing went well, and of a ladder with an empty level."""
    for view in (view_of_run(hostile_analysis()), view_of_sweep(hostile_ladder())):
        for part in as_told(view):
            for chart in part["charts"]:
                assert any(value is not None for line in chart["lines"] for value in line["values"])
