"""Reads metrics pages and GPUs before, during and after a run: each on beats of its own, never twice at once."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import httpx2
from asyncio_throttle.throttler import Throttler

from loadgen.adapters.servers.control import PAGE_LIMIT_BYTES, Control, Page
from loadgen.adapters.servers.dcgm_page import dcgm_samples
from loadgen.adapters.servers.generic import page_engine
from loadgen.adapters.servers.nvml import GpuReader
from loadgen.adapters.servers.pages import PAGE_ENGINES, samples
from loadgen.adapters.servers.tensorrt_llm_iterations import IterationTotals
from loadgen.core.server.sample import GPU_SOURCE, Counters, GpuSample, Scrape, ServerSample
from loadgen.core.units import nanoseconds, seconds
from loadgen.engine.ports import Clock

SETTLE_S = 0.25
"""Engines publish a step's counts a moment after its last token has left."""
SETTLE_MOST_S = 1.0
MOST_READS_PER_S = 20
PAGE_TIMEOUT_S = 3.0
"""A page that hangs holds up the end of a run twice as long: by a reading under way, and by the last one."""

Samples = tuple[tuple[ServerSample, ...], tuple[GpuSample, ...]]
Reader = Callable[[Page], Samples]
"""From a page to the samples of processes and of GPUs. Raises ValueError with a reason for people."""


class ScrapeSink(Protocol):
    """Takes what was read, in the order of reading. A full or failed sink raises StoreError."""

    def put(self, scrape: Scrape) -> None:
        """Accepts one scrape."""
        ...


class Source(Protocol):
    """What is read: a page, or the GPUs of this machine. `name` is its name among the scrapes."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    async def fetch(self) -> Callable[[], Samples]:
        """Gets what there is now; what is given back makes sense of it, in a thread.

        Both raise ValueError with a reason for people.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsPage:
    """A page: its name among them, its server, its place there, and what makes samples of it.

    `missed` is told of a page that broke on its way: the server may take it for read.
    """

    name: str
    control: Control
    path: str
    reader: Reader
    missed: Callable[[], None] | None = None

    async def fetch(self) -> Callable[[], Samples]:
        """The page, to be read. Raises ValueError where there is none."""
        try:
            found = await self._page()
        except ValueError:
            if self.missed is not None:
                self.missed()
            raise
        if 300 <= found.status < 400:
            raise ValueError(f"HTTP {found.status}: redirects elsewhere; give the final address")
        if found.status != 200:
            raise ValueError(f"HTTP {found.status}")
        return partial(self.reader, found)

    async def _page(self) -> Page:
        try:
            async with asyncio.timeout(PAGE_TIMEOUT_S):
                found = await self.control.fetch("GET", self.path)
        except TimeoutError:
            raise ValueError(f"no answer within {PAGE_TIMEOUT_S:g} s") from None
        except (httpx2.HTTPError, OSError) as error:
            raise ValueError(f"{type(error).__name__}: {error}".removesuffix(": ")) from error
        if len(found.body) >= PAGE_LIMIT_BYTES:
            raise ValueError(f"the page has {PAGE_LIMIT_BYTES >> 20} MiB or more, of which no more was read")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalGpus:
    """The GPUs of this machine."""

    reader: GpuReader
    name: str = GPU_SOURCE

    async def fetch(self) -> Callable[[], Samples]:
        """What they tell now. Raises ValueError where one of them does not answer."""
        found: Samples = ((), await asyncio.to_thread(self.reader.read))
        return lambda: found


class MetricsProbe:
    """The ServerProbe port over sources. What cannot be read is a scrape with its fault, never an exception.

    Pages are fetched in the event loop and made sense of in a thread. `interval_s` lies between two readings of a
    source during a run; one that takes longer misses beats. All sources together are read at most MOST_READS_PER_S
    times a second.
    """

    def __init__(self, sources: Sequence[Source], *, clock: Clock, sink: ScrapeSink, interval_s: float) -> None:
        self._sources = sources
        self._reading = {source.name: asyncio.Lock() for source in sources}
        self._clock, self._sink = clock, sink
        self._interval_ns = nanoseconds(interval_s)
        self._throttler = Throttler(rate_limit=MOST_READS_PER_S, period=1.0)
        self._over = asyncio.Event()

    async def before(self) -> None:
        """Reads every source once."""
        await asyncio.gather(*map(self._read, self._sources))

    async def during(self) -> None:
        """Reads every source on its beats until `after` is called."""
        async with asyncio.TaskGroup() as group:
            for source in self._sources:
                group.create_task(self._beat(source))

    async def after(self) -> None:
        """Reads every source until its counters stand still, for SETTLE_MOST_S at the most.

        A reading under way is waited for first: what it took out of a queue must not be lost. No source waits for
        another.
        """
        self._over.set()
        await asyncio.gather(*map(self._settle, self._sources))

    async def _settle(self, source: Source) -> None:
        last = await self._read(source)
        end_ns = self._clock.now_ns() + nanoseconds(SETTLE_MOST_S)
        while _counted(last) and self._clock.now_ns() < end_ns:
            await asyncio.sleep(SETTLE_S)
            before, last = last, await self._read(source)
            if _counted(before) == _counted(last):
                return

    async def _beat(self, source: Source) -> None:
        start_ns, beat = self._clock.now_ns(), 0
        while True:
            beat = max(beat, (self._clock.now_ns() - start_ns) // self._interval_ns) + 1
            if await self._over_by(start_ns + beat * self._interval_ns):
                return
            await self._read(source)

    async def _over_by(self, instant_ns: int) -> bool:
        """Whether the run was over at an instant, or before."""
        try:
            async with asyncio.timeout(seconds(instant_ns - self._clock.now_ns())):
                return await self._over.wait()
        except TimeoutError:
            return False

    async def _read(self, source: Source) -> Scrape:
        server: tuple[ServerSample, ...] = ()
        gpus: tuple[GpuSample, ...] = ()
        fault = None
        async with self._reading[source.name], self._throttler:
            began_ns = self._clock.now_ns()
            try:
                try:
                    understand = await source.fetch()
                finally:
                    took_ns = self._clock.now_ns() - began_ns
                server, gpus = await asyncio.to_thread(understand)
            except ValueError as error:
                fault = str(error)
        scrape = Scrape(
            taken_ns=began_ns + took_ns // 2,
            took_ns=took_ns,
            source=source.name,
            samples=server,
            gpus=gpus,
            fault=fault,
        )
        self._sink.put(scrape)
        return scrape


@dataclass(slots=True)
class EngineReader:
    """Reads an engine's metrics page, or TensorRT-LLM's iterations, of which it keeps the sums.

    An engine that is not known gives way to the one whose metrics are on the page.
    """

    engine: str | None
    model: str
    _iterations: IterationTotals = field(default_factory=IterationTotals)

    def __call__(self, page: Page) -> Samples:
        """The page's samples of processes. Raises ValueError."""
        if self.engine == "tensorrt-llm" and page.body.lstrip().startswith(b"["):
            return (self._iterations.add(page.body),), ()
        text = page.text
        engine = self.engine if self.engine in PAGE_ENGINES else page_engine(text)
        if engine is None:
            raise ValueError("no metric of a known engine is on the page")
        return samples(engine, text, model=self.model), ()

    def missed(self) -> None:
        """A page broke on its way: of a queue that reading empties, the sums are not known any more."""
        self._iterations.miss()


def gpu_reader(page: Page) -> Samples:
    """The samples of GPUs on a page of the DCGM exporter. Raises ValueError."""
    return (), dcgm_samples(page.text)


def _counted(scrape: Scrape) -> list[tuple[str, Counters]]:
    """What must stand still before a run is over: counters alone, since power never does."""
    return [(sample.engine, sample.counters) for sample in scrape.samples]
