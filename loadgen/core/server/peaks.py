"""The largest value that a gauge showed in a span of time, over all processes of a server or all GPUs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from loadgen.core.server.sample import Scrape, ServerSample
from loadgen.core.server.tracks import Sample, Track, gpu_tracks, same_process, server_tracks

Join = Callable[[list[float]], float]


def peak(scrapes: Iterable[Scrape], gauge: str, start_ns: int, end_ns: int, join: Join = sum) -> float | None:
    """The largest of the values that `join` makes of the processes' gauges, each by its last reading until then.

    At the ends of the span a gauge lies on the straight line between the readings on either side, as in a mean over the
    span, which is so never above its peak. None when a process was never read in the span, or does not show the gauge.
    Peaks between readings are not seen.
    """
    return _largest(server_tracks(scrapes)[0], lambda sample: getattr(sample.gauges, gauge), start_ns, end_ns, join)


def gpu_peak(scrapes: Iterable[Scrape], figure: str, start_ns: int, end_ns: int, join: Join = sum) -> float | None:
    """The same of a figure of the GPUs."""
    return _largest(gpu_tracks(scrapes), lambda sample: getattr(sample, figure), start_ns, end_ns, join)


def _largest(
    tracks: Sequence[Track[Sample]], value: Callable[[Sample], float | None], start_ns: int, end_ns: int, join: Join
) -> float | None:
    readings: list[tuple[int, int, float]] = []
    for place, track in enumerate(tracks):
        shown = [
            (reading.taken_ns, place, found)
            for reading in track.within(start_ns, end_ns).readings
            if reading.sample is not None and (found := value(reading.sample)) is not None
        ]
        if not shown:
            return None
        readings += shown
        for end in (start_ns, end_ns):
            readings += [(end, place, found) for found in _between(track, value, end)]
    readings.sort()
    last: dict[int, float] = {}
    largest: float | None = None
    for _, place, found in readings:
        last[place] = found
        if len(last) == len(tracks):
            joined = join(list(last.values()))
            largest = joined if largest is None else max(largest, joined)
    return largest


def _between(track: Track[Sample], value: Callable[[Sample], float | None], at_ns: int) -> Iterator[float]:
    """The value at an instant between two readings in a row of one process; none where it is not known."""
    for one, other in pairwise(track.readings):
        if not one.taken_ns < at_ns < other.taken_ns or one.sample is None or other.sample is None:
            continue
        if isinstance(one.sample, ServerSample) and same_process(one.sample, other.sample) is False:
            continue
        before, after = value(one.sample), value(other.sample)
        if before is not None and after is not None:
            yield before + (after - before) * (at_ns - one.taken_ns) / (other.taken_ns - one.taken_ns)
