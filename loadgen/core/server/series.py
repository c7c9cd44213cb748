"""A server's own figures over time, in bins of the run's axis."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from loadgen.core.server.sample import Counters, Gauges, GpuSample, Scrape, ServerSample
from loadgen.core.server.tracks import Track, gpu_tracks, server_tracks
from loadgen.core.server.window import Reset, difference
from loadgen.core.units import seconds

MIN_KNOWN_RATIO = 0.5
"""From this share of a bin on that readings cover, the bin has a value: what they cover stands for the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSeries:
    """Values a bin, between `edges_s` on the run's axis; None where a process was not read, or was started anew.

    Requests, rates and power are sums over processes or GPUs. Counters are taken to grow evenly between two readings,
    and gauges to move in a straight line. The ratios and the acceptance length are ratios of sums.
    """

    edges_s: tuple[float, ...]
    running_requests: tuple[float | None, ...]
    waiting_requests: tuple[float | None, ...]
    kv_used_mean_ratio: tuple[float | None, ...]
    kv_used_max_ratio: tuple[float | None, ...]
    prompt_tokens_per_s: tuple[float | None, ...]
    generation_tokens_per_s: tuple[float | None, ...]
    preemptions_per_s: tuple[float | None, ...]
    prefix_hit_ratio: tuple[float | None, ...]
    acceptance_length: tuple[float | None, ...]
    gpu_power_w: tuple[float | None, ...]


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

    def gauge(name: str) -> list[list[float | None]]:
        return [_binned(pieces, edges_ns, _gauge(name)) for pieces in processes]

    def rate(name: str) -> list[float | None]:
        return _sums([_binned(pieces, edges_ns, _growth(name)) for pieces in processes])

    kv_used = gauge("kv_used_ratio")
    accepted, drafts = rate("accepted_tokens"), rate("drafts")
    return ServerSeries(
        edges_s=tuple(seconds(edge) for edge in edges_ns),
        running_requests=tuple(_sums(gauge("running_requests"))),
        waiting_requests=tuple(_sums(gauge("waiting_requests"))),
        kv_used_mean_ratio=tuple(None if each is None else each / len(kv_used) for each in _sums(kv_used)),
        kv_used_max_ratio=tuple(_each_bin(kv_used, max)),
        prompt_tokens_per_s=tuple(rate("prompt_tokens")),
        generation_tokens_per_s=tuple(rate("generation_tokens")),
        preemptions_per_s=tuple(rate("preemptions")),
        prefix_hit_ratio=tuple(_ratios(rate("prefix_hit_tokens"), rate("prefix_query_tokens"))),
        acceptance_length=tuple(None if each is None else 1 + each for each in _ratios(accepted, drafts)),
        gpu_power_w=tuple(_sums([_binned(pieces, edges_ns, _gauge("power_w")) for pieces in gpus])),
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
        for bin_ in range(place, len(sums)):
            begin_ns, end_ns = max(piece.begin_ns, edges_ns[bin_]), min(piece.end_ns, edges_ns[bin_ + 1])
            if edges_ns[bin_] >= piece.end_ns:
                break
            span_ns = piece.end_ns - piece.begin_ns
            found = amount(piece, (begin_ns - piece.begin_ns) / span_ns, (end_ns - piece.begin_ns) / span_ns)
            if found is not None and end_ns > begin_ns:
                sums[bin_] += found
                known_s[bin_] += seconds(end_ns - begin_ns)
    widths_s = [seconds(after - before) for before, after in pairwise(edges_ns)]
    return [
        total / known if known and known >= MIN_KNOWN_RATIO * width else None
        for total, known, width in zip(sums, known_s, widths_s, strict=True)
    ]


def _each_bin(parts: Sequence[Sequence[float | None]], join: Callable[[list[float]], float]) -> list[float | None]:
    """Parts joined bin by bin; None where one of them has no value, or there are none."""
    joined: list[float | None] = []
    for values in zip(*parts, strict=True):
        known = [value for value in values if value is not None]
        joined.append(join(known) if len(known) == len(values) else None)
    return joined


def _sums(parts: Sequence[Sequence[float | None]]) -> list[float | None]:
    return _each_bin(parts, sum)


def _ratios(parts: Sequence[float | None], wholes: Sequence[float | None]) -> list[float | None]:
    return [part / whole if part is not None and whole else None for part, whole in zip(parts, wholes, strict=True)]
