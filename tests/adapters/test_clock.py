"""The run's clock: one monotonic axis, and sleeps that end on time but never before."""

import asyncio
import statistics
import time
from pathlib import Path

import pytest

from loadgen.adapters.clock import MonotonicClock
from loadgen.core.errors import InternalError

MS = 1_000_000


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_sleep_never_ends_before_its_instant() -> None:
    """No sleep returns early, whatever its length; most end well inside the millisecond of asyncio's own timers."""
    clock = MonotonicClock()
    late = []
    for microseconds in range(100, 2600, 50):
        due = clock.now_ns() + microseconds * 1000
        await clock.sleep_until(due)
        late.append(clock.now_ns() - due)
    clock.close()
    assert min(late) >= 0
    assert statistics.median(late) < 0.6 * MS


async def test_sleepers_wake_in_the_order_of_their_instants() -> None:
    """Many sleepers on one clock wake by due time, not by the order in which they went to sleep."""
    clock = MonotonicClock()
    start = clock.now_ns() + 5 * MS
    woken: list[int] = []

    async def sleeper(offset: int) -> None:
        await clock.sleep_until(start + offset * MS)
        assert clock.now_ns() >= start + offset * MS
        woken.append(offset)

    await asyncio.gather(*(sleeper(offset) for offset in (7, 3, 9, 1, 5)))
    clock.close()
    assert woken == [1, 3, 5, 7, 9]


async def test_an_instant_in_the_past_still_lets_others_run() -> None:
    """A caller that is behind yields at each step, so what it started is not held up until it has caught up."""
    clock = MonotonicClock()
    ran = asyncio.Event()

    async def other() -> None:
        ran.set()

    task = asyncio.create_task(other())
    await clock.sleep_until(clock.now_ns() - 1)
    assert ran.is_set()
    await task


async def test_a_cancelled_sleeper_does_not_hold_up_the_next() -> None:
    """The earliest sleeper is cancelled; a later one still wakes on time."""
    clock = MonotonicClock()
    first = asyncio.create_task(clock.sleep_until(clock.now_ns() + 5 * MS))
    due = clock.now_ns() + 10 * MS
    second = asyncio.create_task(clock.sleep_until(due))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait_for(second, 5)
    assert clock.now_ns() >= due
    clock.close()


async def test_close_gives_the_timer_back_and_cancels_sleepers() -> None:
    """After `close` the clock holds no descriptor, nobody sleeps on, and time can still be read."""
    before = open_descriptors()
    clock = MonotonicClock()
    sleeper = asyncio.create_task(clock.sleep_until(clock.now_ns() + 3600 * 1000 * MS))
    await asyncio.sleep(0)
    clock.close()
    with pytest.raises(asyncio.CancelledError):
        await sleeper
    assert open_descriptors() == before
    assert clock.now_ns() > 0
    clock.close()


def test_the_axis_starts_at_zero_and_is_anchored_to_the_wall() -> None:
    """`now_ns` counts from the clock's making, and `origin_unix_ns` is the wall time of that moment."""
    before = time.time_ns()
    clock = MonotonicClock()
    assert before <= clock.origin_unix_ns <= time.time_ns()
    assert 0 <= clock.now_ns() < 1000 * MS


def test_a_second_process_can_share_the_axis() -> None:
    """A clock made from another's origin reads the same instants; half an origin is refused."""
    clock = MonotonicClock()
    twin = MonotonicClock(origin_monotonic_ns=clock.origin_monotonic_ns, origin_unix_ns=clock.origin_unix_ns)
    before = clock.now_ns()
    between = twin.now_ns()
    assert before <= between <= clock.now_ns()
    with pytest.raises(InternalError):
        MonotonicClock(origin_monotonic_ns=1)
