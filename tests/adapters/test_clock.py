"""The run's clock: one monotonic axis, and sleeps that end on time but never before."""

import ast
import asyncio
import statistics
import time
from pathlib import Path

import pytest

import loadgen
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


def test_the_wall_clock_decides_no_instant() -> None:
    """Whatever the wall clock said when the run began, also nonsense, time goes by as the monotonic clock says."""
    for nonsense in (0, 2**62):
        clock = MonotonicClock(origin_monotonic_ns=time.monotonic_ns(), origin_unix_ns=nonsense)
        assert 0 <= clock.now_ns() < 1000 * MS


ANCHORS = {
    "adapters/clock.py": "the run's origin",
    "adapters/http/stamps.py": "kernel stamps, which are wall time",
    "adapters/otlp/collector.py": "when a collector was told",
    "adapters/store/run_folder.py": "names of runs",
    "locustio/conductor/crew.py": "numbers of levels that no process before had",
    "locustio/swarm/master.py": "how far workers' clocks are from the master's",
    "locustio/swarm/tables.py": "Locust's own tables, which are by wall time",
    "locustio/swarm/worker.py": "the same as for the master; and when Locust last heard of it, which is wall time",
    "service/clock.py": "what the service does by the calendar",
    "service/schedules/cron.py": "a schedule in words, which are the same at any time",
    "sim/server/vllm_statistics.py": "when a simulated process started, for its metrics page",
    "sim/truth.py": "the run's origin, in the known-truth server",
    "wiring/execute.py": "when the run ended, beside its origin",
    "wiring/experiment.py": "when the experiment was begun",
    "wiring/push.py": "since when counts are told to a collector",
    "wiring/sittings.py": "when a server was started and a cell ended",
    "wiring/watch.py": "when a search for a capacity ended, for its history",
    "wiring/workers/child.py": "the run's origin, as a leader on another machine tells it",
}


def test_the_wall_clock_is_read_for_correlation_only() -> None:
    """Nothing else reads it, so no duration can be a difference of it: a step of the clock changes no metric."""
    root = Path(loadgen.__file__).parent
    wall = {("time", "time"), ("time", "time_ns"), ("time", "clock_gettime_ns"), ("time", "clock_gettime")}
    wall |= {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}
    readers = set()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if (node.value.id, node.attr) in wall:
                    readers.add(path.relative_to(root).as_posix())
            elif isinstance(node, ast.ImportFrom) and node.module == "time":
                assert not {alias.name for alias in node.names} & {"time", "time_ns", "clock_gettime_ns"}, path
    assert readers == ANCHORS.keys()
