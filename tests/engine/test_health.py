"""What the client measures of itself."""

import asyncio
import time

from loadgen.core.run import ClientFacts, TimingSource
from loadgen.engine.health import Health
from tests.fakes.virtual_time import VirtualTimeLoop, run_virtual


async def beating(health: Health, *, stall_s: float, every_s: float) -> None:
    """Ten seconds of a loop that something blocks for `stall_s` every `every_s`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    heart = asyncio.ensure_future(health.beat())
    health.begin()
    for _ in range(round(10 / every_s)):
        await asyncio.sleep(every_s)
        loop.lose(stall_s)
    health.end()
    heart.cancel()


def facts_of(*, stall_s: float, every_s: float = 1.0) -> ClientFacts:
    health = Health()
    run_virtual(beating(health, stall_s=stall_s, every_s=every_s))
    return health.facts(TimingSource.USER)


def test_a_blocking_call_shows_as_a_late_loop() -> None:
    """300 ms of blocking every second: the largest stall and the p99 tell; an undisturbed loop is never late."""
    blocked, free = facts_of(stall_s=0.3), facts_of(stall_s=0.0)
    assert blocked.loop_stall_max_s is not None
    assert blocked.loop_stall_p99_s is not None
    assert 0.25 < blocked.loop_stall_p99_s <= blocked.loop_stall_max_s <= 0.3 + 1e-9
    assert free.loop_stall_max_s is not None
    assert free.loop_stall_max_s < 1e-6


def test_a_short_run_tells_no_p99_of_its_loop() -> None:
    """Fewer than a hundred beats carry none."""
    health = Health()

    async def briefly() -> None:
        heart = asyncio.ensure_future(health.beat())
        health.begin()
        await asyncio.sleep(1.0)
        health.end()
        heart.cancel()

    run_virtual(briefly())
    facts = health.facts(TimingSource.USER)
    assert facts.loop_stall_p99_s is None
    assert facts.loop_stall_max_s is not None


def test_cpu_is_measured_over_the_window_only() -> None:
    """A window spent computing is about one core; what was computed before and after is in no figure."""
    health = Health()
    burn(0.1)
    health.begin()
    burn(0.2)
    health.end()
    burn(0.1)
    facts = health.facts(TimingSource.KERNEL)
    assert facts.cpu_ratio is not None
    assert 0.2 < facts.cpu_ratio < 1.1


def test_a_window_that_never_began_has_no_cpu() -> None:
    """Nothing measured is None, not an idle client."""
    health = Health()
    health.end()
    assert health.facts(TimingSource.USER).cpu_ratio is None


def burn(s: float) -> None:
    end = time.perf_counter() + s
    while time.perf_counter() < end:
        pass
