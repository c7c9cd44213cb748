"""The largest value that a gauge showed in a span of time, over all processes of a server."""

from collections.abc import Callable, Iterable

from loadgen.core.server.sample import Scrape
from loadgen.core.server.tracks import server_tracks


def peak(
    scrapes: Iterable[Scrape], gauge: str, start_ns: int, end_ns: int, join: Callable[[list[float]], float] = sum
) -> float | None:
    """The largest of the values that `join` makes of the processes' gauges, each by its last reading until then.

    None when a process was never read in the span, or does not show the gauge. Peaks between readings are not seen.
    """
    tracks = server_tracks(scrapes)[0]
    readings = sorted(
        (reading.taken_ns, place, getattr(reading.sample.gauges, gauge))
        for place, track in enumerate(tracks)
        for reading in track.within(start_ns, end_ns).readings
        if reading.sample is not None and getattr(reading.sample.gauges, gauge) is not None
    )
    last: dict[int, float] = {}
    largest: float | None = None
    for _, place, value in readings:
        last[place] = value
        if len(last) == len(tracks):
            joined = join(list(last.values()))
            largest = joined if largest is None else max(largest, joined)
    return largest
