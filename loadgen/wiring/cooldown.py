"""Between two runs: until the server is idle, so that one does not measure what the other left behind."""

import asyncio

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.servers.generic import TargetFacts
from loadgen.core.server.sample import GPU_SOURCE, Scrape
from loadgen.core.units import duration_text
from loadgen.wiring.probe import Pages, probe_into

LOOK_S = 0.2
IDLE_MOST_S = 60.0


class _Latest:
    """Keeps the last reading of each page."""

    def __init__(self) -> None:
        self._scrapes: dict[str, Scrape] = {}

    def put(self, scrape: Scrape) -> None:
        self._scrapes[scrape.source] = scrape

    @property
    def open_requests(self) -> float | None:
        """Requests running and waiting on all pages together; None when there is a page that does not tell."""
        told = [
            (sample.gauges.running_requests, sample.gauges.waiting_requests)
            for scrape in self._scrapes.values()
            for sample in scrape.samples
        ]
        read = all(scrape.samples for scrape in self._scrapes.values())
        if not read or any(running is None for running, _ in told):
            return None
        return sum((running or 0.0) + (waiting or 0.0) for running, waiting in told)


async def cool_down(
    pages: Pages, facts: TargetFacts, *, pause_s: float, most_s: float = IDLE_MOST_S
) -> tuple[str, ...]:
    """Waits until the server runs nothing, or for `pause_s` where none of its pages tells; notes for the next run.

    After `most_s` it is waited no more, which is noted.
    """
    engines = {source: page for source, page in pages.items() if source != GPU_SOURCE}
    latest, clock = _Latest(), MonotonicClock()
    try:
        async with probe_into(latest, engines, facts, clock=clock, interval_s=LOOK_S) as probe:
            async with asyncio.timeout(most_s):
                while engines:
                    await probe.before()
                    still = latest.open_requests
                    if still is None:
                        break
                    if not still:
                        return ()
                    await asyncio.sleep(LOOK_S)
    except TimeoutError:
        return (f"the server was still busy {duration_text(most_s)} after the run before",)
    finally:
        clock.close()
    await asyncio.sleep(pause_s)
    return ()
