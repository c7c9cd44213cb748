"""The largest value that a gauge showed in a span of time, over all processes of a server or all GPUs."""

from collections.abc import Callable, Iterable, Sequence

from loadgen.core.server.sample import Scrape
from loadgen.core.server.tracks import Sample, Track, gpu_tracks, server_tracks

Join = Callable[[list[float]], float]


def peak(scrapes: Iterable[Scrape], gauge: str, start_ns: int, end_ns: int, join: Join = sum) -> float | None:
    """The largest of the values that `join` makes of the processes' gauges, each by its last reading until then.

    None when a process was never read in the span, or does not show the gauge. Peaks between readings are not seen.
    """
    return _largest(server_tracks(scrapes)[0], lambda sample: getattr(sample.gauges, gauge), start_ns, end_ns, join)


def gpu_peak(scrapes: Iterable[Scrape], figure: str, start_ns: int, end_ns: int, join: Join = sum) -> float | None:
    """The same of a figure of the GPUs."""
    return _largest(gpu_tracks(scrapes), lambda sample: getattr(sample, figure), start_ns, end_ns, join)


def _largest(
    tracks: Sequence[Track[Sample]], value: Callable[[Sample], float | None], start_ns: int, end_ns: int, join: Join
) -> float | None:
    readings = sorted(
        (reading.taken_ns, place, shown)
        for place, track in enumerate(tracks)
        for reading in track.within(start_ns, end_ns).readings
        if reading.sample is not None and (shown := value(reading.sample)) is not None
    )
    last: dict[int, float] = {}
    largest: float | None = None
    for _, place, shown in readings:
        last[place] = shown
        if len(last) == len(tracks):
            joined = join(list(last.values()))
            largest = joined if largest is None else max(largest, joined)
    return largest
