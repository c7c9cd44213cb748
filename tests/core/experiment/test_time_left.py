"""How long what is left of an experiment should take."""

from dataclasses import replace

import pytest

from loadgen.core.experiment.estimate import Estimate
from loadgen.core.experiment.plan import Order, PlannedArm, PlannedLevel, Role, make_plan
from loadgen.core.experiment.time_left import TimeLeft
from loadgen.core.run import Load, LoadMode

LEVELS = [
    PlannedLevel(load=Load(mode=LoadMode.CONCURRENCY, concurrency=level, num_requests=8), warmup_requests=0)
    for level in (1, 2)
]
ARM = PlannedArm(name="plain", label="plain", role=Role.BASELINE, of="plain")
PLAN = make_plan("mine", arms=[ARM], levels=LEVELS, repeats=2, order=Order.ABBA, workload={}, servers={})
FIRST, SECOND = PLAN.sittings
ESTIMATE = Estimate(
    requests=32,
    warmup_requests=0,
    input_tokens=None,
    output_tokens=None,
    duration_s=110.0,
    price=None,
    sittings_s={"r1-plain": 55.0, "r2-plain": 55.0},
    cells_s={"r1-plain/c1": 30.0, "r1-plain/c2": 20.0, "r2-plain/c1": 30.0, "r2-plain/c2": 20.0},
    basis=(),
)


def time_left(estimate: Estimate = ESTIMATE) -> TimeLeft:
    """Of two arms that are started by command, which should take 5 s, and one that runs already."""
    servers = {"plain": "command", "other": "command", "running": "url"}
    return TimeLeft(estimate=estimate, servers=servers, starts_s={"command": 5.0, "url": 0.0})


def test_before_anything_has_run_it_is_the_estimate() -> None:
    """Cells left in this sitting, then whole sittings with their starts, or what is left of one that was begun."""
    left = time_left()
    assert left.of([*FIRST.cells, *SECOND.cells], starts=[[ARM]]) == pytest.approx(30 + 20 + 55)
    assert left.of(SECOND.cells[1:], starts=[[ARM]]) == pytest.approx(5 + 20)
    assert left.of((), starts=()) == 0


def test_runs_go_on_at_the_pace_of_those_that_ended_and_starts_do_not() -> None:
    """A cell of 30 s took 60 s: what is left of runs is doubled, the 5 s of a start are not."""
    left = time_left()
    left.took(FIRST.cells[0], 60.0)
    assert left.of([*FIRST.cells[1:], *SECOND.cells], starts=[[ARM]]) == pytest.approx(2 * 20 + 2 * 50 + 5)


def test_starts_take_the_median_of_those_seen() -> None:
    """Of all that are started alike; a server that did not come up says nothing, and one that runs starts at once."""
    left, other, running = time_left(), replace(ARM, of="other"), replace(ARM, of="running")
    left.started(ARM, None)
    assert left.of((), starts=[[ARM], [other], [running]]) == pytest.approx(5 + 5)
    left.started(ARM, 200.0)
    assert left.of((), starts=[[ARM], [other], [running]]) == pytest.approx(200 + 200)
    left.started(other, 40.0)
    left.started(ARM, 60.0)
    assert left.of((), starts=[[ARM], [other], [running]]) == pytest.approx(60 + 60)


def test_servers_that_start_together_take_as_long_as_the_slowest() -> None:
    """Once a repeat."""
    running = replace(ARM, of="running")
    assert time_left().of((), starts=[[running, ARM], [ARM, running]]) == pytest.approx(5 + 5)


def test_without_an_estimate_there_is_no_time() -> None:
    """Unknown is None, also once a cell has shown how long it takes."""
    left = time_left(replace(ESTIMATE, duration_s=None, cells_s={}, sittings_s={}))
    left.took(FIRST.cells[0], 60.0)
    assert left.of(FIRST.cells, starts=()) is None
