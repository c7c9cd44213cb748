"""What an experiment comes to in requests, tokens, time and money."""

from typing import Any

import pytest

from loadgen.core.experiment.estimate import Estimate, Expected, estimate, level_s
from loadgen.core.experiment.plan import Order, Plan, PlannedArm, PlannedLevel, Role, make_plan
from loadgen.core.run import Load, LoadMode

CLOSED = PlannedLevel(load=Load(mode=LoadMode.CONCURRENCY, concurrency=4, num_requests=36), warmup_requests=4)
OPEN = PlannedLevel(load=Load(mode=LoadMode.RATE, request_rate_rps=2.0, num_requests=36), warmup_requests=4)


def small_plan() -> Plan:
    slow = PlannedArm(name="slow", label="slow", role=Role.BASELINE, of="slow")
    fast = PlannedArm(name="fast", label="fast", role=Role.COMPARED, of="fast")
    return make_plan(
        "mine", arms=[slow, fast], levels=[CLOSED, OPEN], repeats=2, order=Order.ABBA, workload={}, servers={}
    )


def small_estimate(**changes: Any) -> Estimate:
    asked: dict[str, Any] = {
        "input_tokens": 50.0,
        "output_tokens": 100.0,
        "slow": {CLOSED: 2.0, OPEN: 2.0},
        "cooldown_s": 1.0,
        "together": False,
        "price_per_hour": 36.0,
        "basis": (),
    }
    asked |= changes
    expected = {
        "slow": Expected(start_s=10.0, answer_s=asked.pop("slow")),
        "fast": Expected(start_s=30.0, answer_s={CLOSED: 1.0, OPEN: 1.0}),
    }
    return estimate(small_plan(), expected, **asked)


def test_a_closed_loop_takes_as_long_as_its_slots_are_busy() -> None:
    """40 answers of 2 s in 4 slots; never less than one answer."""
    assert level_s(CLOSED, 2.0) == pytest.approx(20.0)
    wide = PlannedLevel(load=Load(mode=LoadMode.CONCURRENCY, concurrency=64, num_requests=16), warmup_requests=0)
    assert level_s(wide, 2.0) == pytest.approx(2.0)


def test_an_open_loop_takes_as_long_as_its_arrivals() -> None:
    """40 arrivals at 2 a second, and the last answer."""
    assert level_s(OPEN, 2.0) == pytest.approx(22.0)


def test_everything_is_counted() -> None:
    """Warm-up, every arm, level and repeat; starts and pauses in the time; money by the hour."""
    found = small_estimate()
    assert (found.requests, found.warmup_requests) == (4 * 80, 4 * 8)
    assert (found.input_tokens, found.output_tokens) == (320 * 50, 320 * 100)
    slow_s, fast_s = 10 + 20 + 1 + 22 + 1, 30 + 10 + 1 + 21 + 1
    assert found.duration_s == pytest.approx(2 * (slow_s + fast_s))
    assert found.price == pytest.approx(found.duration_s / 100)
    assert found.sittings_s == pytest.approx(
        {"r1-slow": slow_s, "r1-fast": fast_s, "r2-fast": fast_s, "r2-slow": slow_s}
    )


def test_servers_together_start_at_once() -> None:
    """A repeat waits for the slowest start alone, and a sitting for none."""
    found = small_estimate(together=True)
    assert found.duration_s == pytest.approx(2 * (30 + 44 + 33))
    assert found.sittings_s["r1-slow"] == pytest.approx(44)


def test_unknown_lengths_make_an_unknown_time() -> None:
    """No figure is invented; what is known of other arms stays, and requests are counted all the same."""
    found = small_estimate(slow=None, output_tokens=None, input_tokens=None)
    assert (found.duration_s, found.price, found.input_tokens, found.output_tokens) == (None, None, None, None)
    assert found.requests == 320
    assert set(found.sittings_s) == {"r1-fast", "r2-fast"}
    assert small_estimate(price_per_hour=None).price is None


def test_a_budget_is_kept_or_the_reason_is_said() -> None:
    """Both times stand in it; an unknown time cannot be held to a budget."""
    found = small_estimate()
    assert found.duration_s is not None
    assert found.beyond(found.duration_s) is None
    assert found.beyond(60) == "it should take 3m 54s, and the budget is 1m 00s"
    assert "is not known" in str(small_estimate(slow=None).beyond(1e9))
