"""The self-check believes an honest client and catches one that is not."""

from typing import Any

import pytest

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.native import NativeTransport
from loadgen.core.record import FailureKind
from loadgen.engine.ports import Ending, Inbox, Timeouts
from loadgen.sim.check import Check, at_most, equal, ought_to_reach
from loadgen.sim.machine import check_machine
from loadgen.sim.self_check import FAULTS, NATIVE_LIMITS, SHAPES, check_transport
from loadgen.sim.truth import spawn_truth_server

SHIFT_NS = 40_000_000


class Dishonest(NativeTransport):
    """Stamps late, loses the first token of long answers and takes every time-out for a reset."""

    async def exchange(self, prepared: Any, inbox: Inbox) -> Ending:
        seen = Inbox()
        ending = await super().exchange(prepared, seen)
        for name in Inbox.__slots__:
            setattr(inbox, name, getattr(seen, name))
        pieces = list(seen.pieces)
        if len(pieces) > 15:
            del pieces[1], seen.stamps[1]
        inbox.pieces, inbox.stamps = pieces, [stamp + SHIFT_NS for stamp in seen.stamps]
        if ending.kind in (FailureKind.IDLE_TIMEOUT, FailureKind.READ_TIMEOUT):
            return Ending(closed_ns=ending.closed_ns, kind=FailureKind.READ, message="not so")
        return ending


async def checked(kind: type[NativeTransport]) -> dict[str, Check]:
    """All checks of a transport by name."""
    with spawn_truth_server() as truth:
        destination = Destination.from_url(truth.url)

        def make(clock: MonotonicClock, timeouts: Timeouts) -> NativeTransport:
            return kind(destination, clock, timeouts=timeouts, path="/v1/chat/completions")

        return {check.name: check for check in await check_transport("t", make, truth, NATIVE_LIMITS)}


@pytest.mark.slow
async def test_an_honest_client_is_believed():
    """The native transport counts every event and token, reads every shape and names every failure."""
    checks = await checked(NativeTransport)
    shapes, failures = [f"t.shape.{shape}" for shape in SHAPES], [f"t.failure.{fault}" for fault in FAULTS]
    counted = ["t.completed", "t.requests_with_other_events", "t.requests_with_other_tokens"]
    assert {name: checks[name] for name in (*counted, *shapes, *failures) if not checks[name].ok} == {}
    figures = [name for name in checks if name.endswith("_s") and name not in shapes + failures]
    assert len(figures) == 6
    assert all(isinstance(checks[name].value, float | int) for name in figures)
    assert checks["t.timing_source"].value in ("kernel", "user")


@pytest.mark.slow
async def test_a_client_that_lies_is_caught():
    """Late stamps, a lost token and a wrong kind each fail their own check."""
    checks = await checked(Dishonest)
    late = checks["t.ttft_bias_p50_s"]
    assert not late.ok
    assert late.value >= SHIFT_NS / 1e9
    assert not checks["t.stamp_delay_p99_s"].ok
    assert checks["t.requests_with_other_events"].value == checks["t.completed"].value
    assert checks["t.shape.plain"].value.startswith("first token off by 0.04")
    assert checks["t.failure.stall"].value == "read"
    assert checks["t.failure.slow_head"].value == "read"
    assert checks["t.failure.http_500"].ok


async def test_the_machine_is_described():
    """Timer, descriptors, ports and cores are looked at; only the timer can fail the whole."""
    checks = {check.name: check for check in await check_machine()}
    assert list(checks) == ["machine.timer_late_p99_s", "machine.descriptors", "machine.local_ports", "machine.cores"]
    assert checks["machine.timer_late_p99_s"].value >= 0
    assert [name for name, check in checks.items() if check.required] == ["machine.timer_late_p99_s"]


@pytest.mark.parametrize(
    ("check", "ok", "required"),
    [
        (at_most("a", 1.0, 1.0, advice=""), True, True),
        (at_most("a", 1.1, 1.0, advice=""), False, True),
        (at_most("a", None, 1.0, advice=""), False, True),
        (ought_to_reach("a", 9, 10, advice=""), False, False),
        (ought_to_reach("a", None, 10, advice=""), True, False),
        (equal("a", "read", "read"), True, True),
        (equal("a", "read", "empty"), False, True),
    ],
)
def test_a_value_stands_to_its_limit(check, ok, required):
    """A required figure that is missing fails; an unknown that would only be advice does not."""
    assert (check.ok, check.required) == (ok, required)
