"""When a run has its server read."""

import asyncio

import pytest

from loadgen.core.errors import StoreError
from tests.engine.bench import Bench, closed
from tests.fakes.scripted_transport import MemorySink
from tests.fakes.virtual_time import FakeClock


class WatchingProbe:
    """Notes when it is called, in ns of the run's axis."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.before_ns = self.after_ns = self.beats = 0
        self.cancelled = False
        self._over = asyncio.Event()

    async def before(self) -> None:
        await asyncio.sleep(0.5)
        self.before_ns = self.clock.now_ns()

    async def during(self) -> None:
        try:
            while not self._over.is_set():
                await asyncio.sleep(0.1)
                self.beats += 1
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    async def after(self) -> None:
        self.after_ns = self.clock.now_ns()
        self._over.set()


def test_the_server_is_read_before_during_and_after_all_requests() -> None:
    """No request leaves before the first reading is done, and the last begins when the last request has ended."""
    probe = WatchingProbe()
    bench = Bench(closed(2, num_requests=10), probe=probe)
    bench.execute()
    records = bench.sink.records
    assert probe.before_ns < min(record.sent_ns or 0 for record in records)
    assert probe.after_ns >= max(record.closed_ns or 0 for record in records)
    assert probe.beats >= 9
    assert not probe.cancelled


def test_a_run_that_fails_does_not_leave_its_probe_behind() -> None:
    """The disk is full: the fault is raised, and nothing reads on."""
    probe = WatchingProbe()
    with pytest.raises(StoreError):
        Bench(closed(2, num_requests=10), probe=probe, sink=MemorySink(fail_after=3)).execute()
    assert probe.cancelled
    assert probe.after_ns == 0
