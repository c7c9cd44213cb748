"""The clock that wakes early and watches for the rest."""

import asyncio

from loadgen.sim.server.punctual import PunctualClock


async def test_it_never_ends_early_and_lets_others_run():
    """Sleeps of any length end at their instant or later, also those shorter than its watch; the loop turns in each."""
    clock, turns = PunctualClock(), 0

    async def beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(beside())
    for length_ns in (-1_000_000, 0, 50_000, 199_999, 1_000_000, 5_000_000):
        due_ns, before = clock.now_ns() + length_ns, turns
        await clock.sleep_until(due_ns)
        assert clock.now_ns() >= due_ns
        assert turns > before
    task.cancel()
    clock.close()
