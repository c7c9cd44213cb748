"""What was read of each engine process, or GPU, over time, once for each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

from loadgen.core.server.sample import GPU_SOURCE, Counters, GpuSample, Scrape, ServerSample

Sample = TypeVar("Sample", ServerSample, GpuSample)

START_MOVES_MOST_S = 2.0
"""Exporters that work out their start anew at each reading move it by a second or so, as clocks are set."""

_COUNTERS = tuple(field.name for field in fields(Counters))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[Sample]):
    """One page at one instant, ns: a process's or a GPU's part of it.

    `sample` is None where a good page said nothing of it, and where the page could not be read, which `failed` tells.
    """

    taken_ns: int
    sample: Sample | None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Track(Generic[Sample]):
    """All readings of one process or GPU, in order of time; `source` is the page, `name` what it is called there."""

    source: str
    name: str
    readings: tuple[Reading[Sample], ...]

    def within(self, first_ns: int, last_ns: int) -> Self:
        """The track from one instant to another, both included."""
        kept = tuple(each for each in self.readings if first_ns <= each.taken_ns <= last_ns)
        return type(self)(source=self.source, name=self.name, readings=kept)


def by_source(scrapes: Iterable[Scrape]) -> dict[str, list[Scrape]]:
    """The scrapes of each page, in order of time."""
    found: dict[str, list[Scrape]] = {}
    for scrape in sorted(scrapes, key=lambda scrape: scrape.taken_ns):
        found.setdefault(scrape.source, []).append(scrape)
    return dict(sorted(found.items()))


def server_tracks(scrapes: Iterable[Scrape]) -> tuple[tuple[Track[ServerSample], ...], tuple[str, ...]]:
    """The tracks of engine processes, and notes in words on those that were left out.

    A front end may show one process under several addresses. Two pages are of one process when they have the same
    engine and start and once the very same counters, above zero: the sums of seconds among them do not meet by chance.
    Where a page shows neither a start nor seconds, replicas that share a load evenly would look the same: both count.

    A counter that is gone from a page, while its process says that it is still the same one, is a gap: that page came
    in part.
    """
    kept: list[Track[ServerSample]] = []
    owners: dict[tuple[str, float | None, Counters], Track[ServerSample]] = {}
    notes = []
    for source, pages in by_source(scrapes).items():
        told = [{sample.engine: sample for sample in page.samples} for page in pages]
        for engine in sorted({engine for samples in told for engine in samples}):
            seen = _with_gaps([samples.get(engine) for samples in told])
            readings = tuple(
                Reading(taken_ns=page.taken_ns, sample=sample, failed=page.fault is not None)
                for page, sample in zip(pages, seen, strict=True)
            )
            track = Track(source=source, name=engine, readings=readings)
            shown = _shown(track)
            twin = next((owners[key] for key in shown if key in owners), None)
            if twin is not None:
                notes.append(f"pages {twin.source} and {source} show the same process {engine}, which is counted once")
                continue
            kept.append(track)
            owners |= dict.fromkeys(shown, track)
    return tuple(kept), tuple(notes)


def gpu_tracks(scrapes: Iterable[Scrape]) -> tuple[Track[GpuSample], ...]:
    """The tracks of the GPUs."""
    pages = by_source(scrapes).get(GPU_SOURCE, [])
    names = sorted({gpu.gpu for page in pages for gpu in page.gpus})
    return tuple(
        Track(source=GPU_SOURCE, name=name, readings=tuple(_gpu_reading(page, name) for page in pages))
        for name in names
    )


def same_process(one: ServerSample, other: ServerSample) -> bool | None:
    """Whether two samples are of one process, by when it started; None where one of them does not say."""
    if one.started_unix_s is None or other.started_unix_s is None:
        return None
    return abs(one.started_unix_s - other.started_unix_s) <= START_MOVES_MOST_S


def _with_gaps(samples: Sequence[ServerSample | None]) -> Iterator[ServerSample | None]:
    """The samples, each with the counters among its gaps that its process had shown before."""
    known: dict[str, Any] = {}
    last: ServerSample | None = None
    for sample in samples:
        if sample is None:
            yield None
            continue
        if last is None or not same_process(last, sample):
            known = {}
        values = {name: getattr(sample.counters, name) for name in _COUNTERS}
        gone = [name for name, before in known.items() if _less_of(before, values[name]) and name not in sample.gaps]
        known |= {name: value for name, value in values.items() if value is not None and name not in gone}
        last = sample
        yield replace(sample, gaps=(*sample.gaps, *gone)) if gone else sample


def _less_of(before: Any, after: Any) -> bool:
    """Whether a counter is gone, or positions of it."""
    return after is None or (isinstance(after, tuple) and len(after) < len(before))


def _gpu_reading(page: Scrape, name: str) -> Reading[GpuSample]:
    sample = next((gpu for gpu in page.gpus if gpu.gpu == name), None)
    return Reading(taken_ns=page.taken_ns, sample=sample, failed=page.fault is not None)


def _shown(track: Track[ServerSample]) -> list[tuple[str, float | None, Counters]]:
    """What tells a process from others: each state of its counters that no other is likely to show."""
    samples = [each.sample for each in track.readings if each.sample is not None]
    return [(track.name, each.started_unix_s, each.counters) for each in samples if _telling(each)]


def _telling(sample: ServerSample) -> bool:
    counted = sample.counters
    if sample.started_unix_s is None:
        return any((counted.queue_s, counted.prefill_s, counted.decode_s))
    return any(any(value) if isinstance(value, tuple) else value for value in astuple(counted))
