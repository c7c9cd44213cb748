"""Scrapes with as little said as a test needs."""

from typing import Any

from loadgen.core.server.sample import GPU_SOURCE, Counters, Gauges, GpuSample, Scrape, ServerSample

S = 10**9


def sample(
    *,
    engine: str = "0",
    started: float | None = 1000.0,
    gauges: Gauges | None = None,
    gaps: tuple[str, ...] = (),
    **counted: Any,
) -> ServerSample:
    """One process with these counters."""
    return ServerSample(
        engine=engine, counters=Counters(**counted), gauges=gauges or Gauges(), started_unix_s=started, gaps=gaps
    )


def page(at_s: float, *samples: ServerSample, source: str = "0") -> Scrape:
    """A page that was read."""
    return Scrape(taken_ns=round(at_s * S), took_ns=1, source=source, samples=samples)


def unread(at_s: float, *, source: str = "0", fault: str = "HTTP 503") -> Scrape:
    """A page that could not be read."""
    return Scrape(taken_ns=round(at_s * S), took_ns=1, source=source, fault=fault)


def gpus(at_s: float, *found: GpuSample) -> Scrape:
    """A reading of GPUs."""
    return Scrape(taken_ns=round(at_s * S), took_ns=1, source=GPU_SOURCE, gpus=found)
