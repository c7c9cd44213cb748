"""What a search for a capacity came to, on a page."""

from dataclasses import replace

import pytest

from loadgen.adapters.prometheus.capacity import EndedSearch
from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.core.capacity.probe import Run
from loadgen.core.capacity.result import CapacityResult, replayed
from loadgen.core.capacity.search import Search, Step
from tests.adapters.prometheus.pages import LABELS
from tests.core.capacity.made import made_run, search, searched


def shown(asked: Search, result: CapacityResult) -> dict[str, float]:
    """Values by name, without the prefix; labels are the common ones and the variable."""
    monitor = Monitor()
    monitor.searched(EndedSearch(labels=LABELS, search=asked, result=result, ended_unix_s=1.5))
    found: dict[str, float] = {}
    for family in monitor.families():
        (series,) = family.series
        assert series.labels == {**LABELS.as_dict(), "variable": "concurrency"}
        assert isinstance(series.value, float | int)
        found[family.name.removeprefix("loadgen_capacity_")] = series.value
    return found


def up_to(level: float, *, invalid_above: bool = False) -> tuple[Search, CapacityResult]:
    """A search over a server that meets the objectives up to a level; above it fails them, or is not to be believed."""

    def serve(step: Step) -> Run:
        if step.level <= level:
            return made_run(200, 200)
        return made_run(100, 200, invalid="lag") if invalid_above else made_run(100, 200)

    asked = search(most=16)
    return asked, searched(asked, serve)


def test_a_capacity_with_its_bounds() -> None:
    """Each figure of the result, and when it ended."""
    assert shown(*up_to(4)) == {
        "verdict": 0,
        "ended_timestamp_seconds": 1.5,
        "level": 4,
        "low_level": 4,
        "high_level": 5,
        "requests_per_second": 9.5,
        "output_tokens_per_second": 95.0,
        "attainment_ratio": 1.0,
        "target_ratio": 0.9,
    }


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (up_to(0), 1),
        (up_to(4, invalid_above=True), 2),
        ((search(), replayed(search(), [(1.0, made_run(200, 200))], objectives={})), 3),
        ((search(), replayed(search(), [], objectives={})), 3),
        ((search(), replayed(search(), [(1.0, replace(made_run(9, 9), cut_short="gone"))], objectives={})), 3),
    ],
    ids=["the first level fails", "invalid", "stopped between levels", "stopped at once", "cut short"],
)
def test_a_search_that_shows_no_capacity(found: tuple[Search, CapacityResult], verdict: int) -> None:
    """It has its verdict and no level, which would be taken for a server that carries less than before."""
    assert shown(*found) == {"verdict": verdict, "ended_timestamp_seconds": 1.5, "target_ratio": 0.9}
