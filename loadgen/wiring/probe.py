"""Which metrics pages and GPUs are read beside a run, and by what."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.generic import TargetFacts
from loadgen.adapters.servers.nvml import local_gpus
from loadgen.adapters.servers.pages import PAGE_ENGINES
from loadgen.adapters.servers.probe import (
    EngineReader,
    LocalGpus,
    MetricsPage,
    MetricsProbe,
    ScrapeSink,
    Source,
    gpu_reader,
)
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.errors import ConfigError
from loadgen.core.server.sample import GPU_SOURCE
from loadgen.engine.ports import Clock, ServerProbe
from loadgen.options.load import CommonOptions
from loadgen.wiring.target import page_destination

_METRICS_PATH = "/metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAddress:
    """A page of a server."""

    destination: Destination
    path: str

    @property
    def url(self) -> str:
        """The address without user info, safe to store."""
        if self.destination.unix_path is not None:
            return f"unix://{self.destination.unix_path}:{self.path}"
        return self.destination.origin + self.path


Pages = dict[str, PageAddress]
"""Metrics pages by their source in `server.jsonl.zst`."""

GpuIndices = Sequence[int] | None
"""GPUs of this machine: None for all of them, empty for none."""


def pages_of(options: CommonOptions, facts: TargetFacts, target: Destination) -> Pages:
    """The pages that the options name, else the target's own if its engine is known, also if it could not be read yet.

    Raises ConfigError for an address that will not do.
    """
    if not options.scrape:
        return {}

    def named(url: str, option: str) -> PageAddress:
        try:
            destination = page_destination(url, options, target)
        except ConfigError as fault:
            raise ConfigError(f"{option}: {str(fault).removeprefix('base URL: ')}") from None
        return PageAddress(destination=destination, path=destination.prefix or _METRICS_PATH)

    urls = dict.fromkeys(options.metrics_url)
    pages = {str(place): named(url, "--metrics-url") for place, url in enumerate(urls)}
    own = facts.metrics_path or facts.unread_metrics_path
    if not pages and own is not None and facts.engine in PAGE_ENGINES:
        pages["0"] = PageAddress(destination=target, path=target.request_target(own))
    if options.gpu_metrics_url is not None:
        pages[GPU_SOURCE] = named(options.gpu_metrics_url, "--gpu-metrics-url")
    return pages


def check_local_gpus(options: CommonOptions) -> None:
    """Raises ConfigError when the GPUs of this machine that the options name cannot be read."""
    if options.local_gpus:
        try:
            with local_gpus(options.gpu_indices):
                pass
        except ConfigError as fault:
            raise ConfigError(f"--local-gpus: {fault}") from fault


@asynccontextmanager
async def probing(
    pages: Pages, facts: TargetFacts, options: CommonOptions, *, folder: RunFolder, clock: Clock
) -> AsyncIterator[ServerProbe | None]:
    """A probe of these pages and of the options' GPUs that writes into the run's folder; None where there are none."""
    if not pages and not options.local_gpus:
        yield None
        return
    sink, interval_s = folder.scrape_writer(), options.scrape_interval
    try:
        async with probe_into(
            sink, pages, facts, clock=clock, interval_s=interval_s, gpus=options.gpu_indices
        ) as probe:
            yield probe
    finally:
        sink.close()


@asynccontextmanager
async def probe_into(
    sink: ScrapeSink,
    pages: Pages,
    facts: TargetFacts,
    *,
    clock: Clock,
    interval_s: float,
    gpus: GpuIndices = (),
) -> AsyncIterator[ServerProbe]:
    """A probe of these pages and GPUs that hands on what it reads."""
    async with AsyncExitStack() as connections:
        sources: list[Source] = []
        for name, page in pages.items():
            control = Control(await connections.enter_async_context(control_client(page.destination)))
            if name == GPU_SOURCE:
                sources.append(MetricsPage(name=name, control=control, path=page.path, reader=gpu_reader))
                continue
            engine = EngineReader(facts.engine, facts.model)
            sources.append(MetricsPage(name=name, control=control, path=page.path, reader=engine, missed=engine.missed))
        if gpus is None or gpus:
            sources.append(LocalGpus(reader=connections.enter_context(local_gpus(gpus))))
        yield MetricsProbe(sources, clock=clock, sink=sink, interval_s=interval_s)
