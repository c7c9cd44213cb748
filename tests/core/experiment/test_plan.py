"""The plan of an experiment: who is started when, under which name, and what makes two plans the same."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.errors import ConfigError
from loadgen.core.experiment.plan import Order, Plan, PlannedArm, PlannedLevel, Role, make_plan, orders
from loadgen.core.run import Load, LoadMode

BASELINE = PlannedArm(name="plain", label="Plain", role=Role.BASELINE, of="plain")
EAGLE = PlannedArm(name="eagle3", label="EAGLE-3", role=Role.COMPARED, of="eagle3", method="eagle3", draft_tokens=3)


def level(concurrency: int, requests: int = 100) -> PlannedLevel:
    load = Load(mode=LoadMode.CONCURRENCY, concurrency=concurrency, num_requests=requests, seed=concurrency)
    return PlannedLevel(load=load, warmup_requests=4)


def rate(rps: float) -> PlannedLevel:
    return PlannedLevel(load=Load(mode=LoadMode.RATE, request_rate_rps=rps, num_requests=100), warmup_requests=4)


def plan(**changes: Any) -> Plan:
    asked: dict[str, Any] = {
        "arms": [BASELINE, EAGLE, BASELINE.again],
        "levels": [level(1), level(16)],
        "repeats": 2,
        "order": Order.ABBA,
        "workload": {"data": "a1b2"},
        "servers": {"plain": {"command": ["serve"]}, "eagle3": {"command": ["serve", "--faster"]}},
    }
    return make_plan("mine", **(asked | changes))


def test_a_sitting_is_an_arm_in_a_repeat_and_a_cell_a_level_of_it() -> None:
    """All levels run in one start; names are paths of folders."""
    found = plan()
    assert [sitting.name for sitting in found.sittings] == [
        *("r1-plain", "r1-eagle3", "r1-plain-again"),
        *("r2-plain-again", "r2-eagle3", "r2-plain"),
    ]
    assert [cell.name for cell in found.sittings[1].cells] == ["r1-eagle3/c1", "r1-eagle3/c16"]
    assert len(list(found.cells)) == 3 * 2 * 2
    assert len({cell.name for cell in found.cells}) == 12


def test_the_baseline_is_the_first_arm_wherever_it_stands() -> None:
    """And the second start of it, from which the noise is known, lies as far from it as can be."""
    found = plan(arms=[EAGLE, BASELINE, BASELINE.again])
    assert [arm.name for arm in found.arms] == ["plain", "eagle3", "plain-again"]
    assert found.baseline is BASELINE
    assert [found.sittings[place].arm.name for place in (0, 2)] == ["plain", "plain-again"]


def test_levels_rise_concurrency_before_rates() -> None:
    """In every sitting alike, however they were given."""
    found = plan(levels=[rate(4), level(16), rate(0.5), level(2)])
    assert [each.name for each in found.levels] == ["c2", "c16", "rps0.5", "rps4"]
    assert all(sitting.levels == found.levels for sitting in found.sittings)


def test_near_rates_have_names_of_their_own() -> None:
    """No two levels share a folder because a name was rounded."""
    assert rate(1_000_000.5).name != rate(1_000_000.25).name
    assert rate(0.1 + 0.2).name == "rps0.3"


def test_forced_arms_bracket_what_a_drafter_can_do() -> None:
    """One with nothing accepted, one with everything; both are of the arm's own server."""
    nothing, everything = EAGLE.forced
    assert (nothing.forced_length, everything.forced_length) == (1, 4)
    assert (nothing.name, everything.name) == ("eagle3-forced-1", "eagle3-forced-4")
    assert {arm.of for arm in EAGLE.forced} == {"eagle3"}
    assert {arm.role for arm in EAGLE.forced} == {Role.FORCED}


def test_arms_that_would_share_a_folder_are_refused() -> None:
    """Also where a file system does not tell upper from lower case; the message names what to rename."""
    other = replace(EAGLE, name="Plain-Again", of="Plain-Again", label="Another")
    with pytest.raises(ConfigError, match=r"'Another' and 'Plain again'.*rename one of 'Plain-Again' and 'plain'"):
        plan(arms=[BASELINE, other, BASELINE.again])


def test_two_repeats_of_two_arms_are_abba() -> None:
    """The order that the method is named for."""
    assert orders(2, 2, Order.ABBA) == [[0, 1], [1, 0]]
    assert orders(3, 3, Order.ABBA) == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    assert orders(2, 5, Order.ABBA) == [[0, 1], [1, 0], [0, 1], [1, 0], [0, 1]]


def test_sequential_keeps_the_order_of_the_file() -> None:
    """In every repeat."""
    assert orders(3, 2, Order.SEQUENTIAL) == [[0, 1, 2], [0, 1, 2]]


@given(arms=st.integers(1, 12), repeats=st.integers(2, 11))
def test_a_steady_drift_cancels(arms: int, repeats: int) -> None:
    """Every arm is as early as it is late: the places of all have the same sum, or 1 off where that cannot be."""
    found = orders(arms, repeats, Order.ABBA)
    assert len(found) == repeats
    assert all(sorted(order) == list(range(arms)) for order in found)
    sums = [sum(order.index(arm) for order in found) for arm in range(arms)]
    equal_is_possible = repeats * (arms - 1) % 2 == 0
    assert max(sums) - min(sums) == (0 if equal_is_possible else 1)


def test_the_digest_stands_for_what_is_measured() -> None:
    """Everything that changes a measurement changes it; what people call things does not."""
    first = plan()
    assert plan().digest == first.digest
    assert plan(arms=[replace(BASELINE, label="Other words"), EAGLE, BASELINE.again]).digest == first.digest
    changed = [
        plan(workload={"data": "c3d4"}),
        plan(levels=[level(1), level(16, requests=200)]),
        plan(servers={"plain": {"command": ["serve"]}, "eagle3": {"command": ["serve", "--slower"]}}),
        plan(repeats=3),
        plan(order=Order.SEQUENTIAL),
        plan(arms=[BASELINE, EAGLE]),
        plan(arms=[BASELINE, EAGLE, EAGLE.forced[0]]),
    ]
    assert len({first.digest, *(each.digest for each in changed)}) == 1 + len(changed)
    same_requests = [each.workload_digest == first.workload_digest for each in changed]
    assert same_requests == [False, False, True, True, True, True, True]
