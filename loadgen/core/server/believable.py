"""What a page says of a server that cannot be, taken out before anything is made of it."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, TypeVar

from loadgen.core.server.sample import Counters, Gauges, GpuSample, Scrape, ServerSample

MOST_COUNTED = 1e15
"""Nothing is counted, or lasts in seconds, so long that a process reaches this."""
MOST_REQUESTS = 1e9
MOST_DRAFTED = 1025
_ROUNDING = 1e-6

_MOST = {
    **{field.name: MOST_COUNTED for field in fields(Counters)},
    **dict.fromkeys(("running_requests", "waiting_requests"), MOST_REQUESTS),
    **dict.fromkeys(("kv_used_ratio", "prefix_hit_ratio", "acceptance_ratio", "utilisation_ratio"), 1 + _ROUNDING),
    "acceptance_length": MOST_DRAFTED,
    "power_w": 1e6,
    "memory_used_bytes": 1e15,
    "energy_j": 1e18,
}

Section = TypeVar("Section", Counters, Gauges, GpuSample)


def believable(scrape: Scrape) -> Scrape:
    """The reading without values that no server can have; a counter among them is unknown at this reading."""
    if not any(True for _ in refused(scrape)):
        return scrape
    return replace(
        scrape,
        samples=tuple(map(_sample, scrape.samples)),
        gpus=tuple(_without(gpu, [name for name, _ in _refused(gpu)]) for gpu in scrape.gpus),
    )


def refused(scrape: Scrape) -> Iterator[str]:
    """In words, each value that cannot be, and each that was there and no number."""
    for sample in scrape.samples:
        for name, value in (*_refused(sample.counters), *_refused(sample.gauges)):
            yield f"{name} of {value:g}"
        if sample.counters != Counters():  # else all of them are unknown for a reason of the reader's
            yield from (f"{name} that is no number" for name in sample.gaps)
    for gpu in scrape.gpus:
        yield from (f"{name} of {value:g}" for name, value in _refused(gpu))


def refused_readings(scrapes: Iterable[Scrape]) -> tuple[int, str | None]:
    """How many readings have such a value, and the first of them."""
    found = [words for scrape in scrapes if (words := next(refused(scrape), None)) is not None]
    return len(found), found[0] if found else None


def _sample(sample: ServerSample) -> ServerSample:
    counters = [name for name, _ in _refused(sample.counters)]
    return replace(
        sample,
        counters=_without(sample.counters, counters),
        gauges=_without(sample.gauges, [name for name, _ in _refused(sample.gauges)]),
        gaps=tuple(dict.fromkeys((*sample.gaps, *counters))),
    )


def _without(section: Section, names: Iterable[str]) -> Section:
    nothing: dict[str, Any] = dict.fromkeys(names)
    return replace(section, **nothing)


def _refused(section: Counters | Gauges | GpuSample) -> Iterator[tuple[str, float]]:
    for field in fields(section):
        most, told = _MOST.get(field.name), getattr(section, field.name)
        values = told if isinstance(told, tuple) else (told,)
        wrong = [value for value in values if most is not None and value is not None and not 0 <= value <= most]
        if wrong:
            yield field.name, wrong[0]
