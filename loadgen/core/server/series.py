"""A server's own figures over time, in bins of the run's axis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from loadgen.core.server.sample import Counters, GpuSample, Scrape, ServerSample
from loadgen.core.server.tracks import Track, gpu_tracks, server_tracks
from loadgen.core.server.window import Reset, difference
from loadgen.core.units import seconds

Values = tuple[float | None, ...]

MIN_KNOWN_RATIO = 0.5
"""From this share of a bin on that readings cover, the bin has a value: what they cover stands for the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSeries:
    """Values a bin, between `edges_s` on the run's axis; None where a process was not read, or was started anew.

    Requests, rates, power and memory are sums over processes or GPUs, use is their mean. Counters are taken to grow
    evenly between two readings, and gauges to move in a straight line. The ratios and the acceptance length are ratios
    of sums.
    """

    edges_s: tuple[float, ...]
    running_requests: Values
    waiting_requests: Values
    kv_used_mean_ratio: Values
    kv_used_max_ratio: Values
    prompt_tokens_per_s: Values
    generation_tokens_per_s: Values
    preemptions_per_s: Values
    prefix_hit_ratio: Values
    acceptance_length: Values
    gpu_power_w: Values
    gpu_utilisation_ratio: Values = ()
    gpu_memory_used_bytes: Values = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """What is known between two readings in a row: gauges at both ends, and the counters' growth."""

    begin_ns: int
    end_ns: int
    before: Any
    after: Any
    growth: Counters


_Amount = Callable[[_Piece, float, float], float | None]
"""The amount of something in a part of a piece, given as the shares of it at which the part begins and ends."""


def server_series(scrapes: Iterable[Scrape], edges_ns: Sequence[int]) -> ServerSeries:
    """The series in the bins between these edges, ns, ascending."""
    scrapes = list(scrapes)
    processes = [list(_server_pieces(track)) for track in server_tracks(scrapes)[0]]
    gpus = [list(_gpu_pieces(track)) for track in gpu_tracks(scrapes)]

    def joined(parts: Sequence[Sequence[_Piece]], amount: _Amount, join: Callable[[list[float]], float]) -> Values:
        """One value a bin from those of each process or GPU; None where one of them has none."""
        binned = [_binned(pieces, edges_ns, amount) for pieces in parts]
        each_bin = [[values[place] for values in binned] for place in range(len(edges_ns) - 1)]
        known = [[value for value in values if value is not None] for values in each_bin]
        return tuple(join(values) if len(values) == len(parts) > 0 else None for values in known)

    def total(name: str) -> Values:
        return joined(processes, _growth(name), sum)

    accepted_a_draft = _ratios(total("accepted_tokens"), total("drafts"))
    return ServerSeries(
        edges_s=tuple(seconds(edge) for edge in edges_ns),
        running_requests=joined(processes, _gauge("running_requests"), sum),
        waiting_requests=joined(processes, _gauge("waiting_requests"), sum),
        kv_used_mean_ratio=joined(processes, _gauge("kv_used_ratio"), fmean),
        kv_used_max_ratio=joined(processes, _gauge("kv_used_ratio"), max),
        prompt_tokens_per_s=total("prompt_tokens"),
        generation_tokens_per_s=total("generation_tokens"),
        preemptions_per_s=total("preemptions"),
        prefix_hit_ratio=_ratios(total("prefix_hit_tokens"), total("prefix_query_tokens")),
        acceptance_length=tuple(None if each is None else 1 + each for each in accepted_a_draft),
        gpu_power_w=joined(gpus, _gauge("power_w"), sum),
        gpu_utilisation_ratio=joined(gpus, _gauge("utilisation_ratio"), fmean),
        gpu_memory_used_bytes=joined(gpus, _gauge("memory_used_bytes"), sum),
    )


def _server_pieces(track: Track[ServerSample]) -> Iterator[_Piece]:
    """What is known between readings in a row, of which none failed, and no process was started anew."""
    for one, other in pairwise(track.readings):
        if one.sample is None or other.sample is None or other.taken_ns <= one.taken_ns:
            continue
        growth = difference(one.sample, other.sample)
        if not isinstance(growth, Reset):
            yield _Piece(one.taken_ns, other.taken_ns, one.sample.gauges, other.sample.gauges, growth)


def _gpu_pieces(track: Track[GpuSample]) -> Iterator[_Piece]:
    for one, other in pairwise(track.readings):
        if one.sample is not None and other.sample is not None and other.taken_ns > one.taken_ns:
            yield _Piece(one.taken_ns, other.taken_ns, one.sample, other.sample, Counters())


def _gauge(name: str) -> _Amount:
    """The integral of a gauge, its unit times seconds."""

    def amount(piece: _Piece, begin: float, end: float) -> float | None:
        before, after = getattr(piece.before, name), getattr(piece.after, name)
        if before is None or after is None:
            return None
        middle: float = before + (after - before) * (begin + end) / 2
        return middle * (end - begin) * seconds(piece.end_ns - piece.begin_ns)

    return amount


def _growth(name: str) -> _Amount:
    """What a counter grew by."""

    def amount(piece: _Piece, begin: float, end: float) -> float | None:
        grown: float | None = getattr(piece.growth, name)
        return None if grown is None else grown * (end - begin)

    return amount


def _binned(pieces: Sequence[_Piece], edges_ns: Sequence[int], amount: _Amount) -> list[float | None]:
    """The amount a second in each bin, over the part of the bin that pieces cover."""
    sums, known_s = [0.0] * (len(edges_ns) - 1), [0.0] * (len(edges_ns) - 1)
    place = 0
    for piece in pieces:
        while place < len(sums) and edges_ns[place + 1] <= piece.begin_ns:
            place += 1
        span_ns = piece.end_ns - piece.begin_ns
        for reached in range(place, len(sums)):
            if edges_ns[reached] >= piece.end_ns:
                break
            begin_ns, end_ns = max(piece.begin_ns, edges_ns[reached]), min(piece.end_ns, edges_ns[reached + 1])
            found = amount(piece, (begin_ns - piece.begin_ns) / span_ns, (end_ns - piece.begin_ns) / span_ns)
            if found is not None:
                sums[reached] += found
                known_s[reached] += seconds(end_ns - begin_ns)
    widths_s = [seconds(after - before) for before, after in pairwise(edges_ns)]
    return [
        total / known if known and known >= MIN_KNOWN_RATIO * width else None
        for total, known, width in zip(sums, known_s, widths_s, strict=True)
    ]


def _ratios(parts: Values, wholes: Values) -> Values:
    return tuple(
        part / whole if part is not None and whole else None for part, whole in zip(parts, wholes, strict=True)
    )
