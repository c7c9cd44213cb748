"""Energy that GPUs used over a span of time."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from loadgen.core.server.sample import Scrape
from loadgen.core.server.tracks import gpu_tracks
from loadgen.core.units import seconds


class EnergyOrigin(StrEnum):
    """A counter that the GPU keeps, or power at instants, taken to move in a straight line between them."""

    COUNTER = "counter"
    POWER = "power"


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Joules over a span, all `gpus` together."""

    energy_j: float
    gpus: int
    origin: EnergyOrigin

    def per_token_j(self, tokens: float | None) -> float | None:
        """Joules a token, of tokens put out over the same span; None when there were none."""
        return self.energy_j / tokens if tokens else None


_Points = Sequence[tuple[int, float]]
"""Instants, ns, in order, and a value at each."""


def energy(scrapes: Iterable[Scrape], start_ns: int, end_ns: int) -> Energy | None:
    """The energy of a span, from the GPUs' counters, or from their power where a counter is missing or fell.

    None when there are no GPUs, or the readings of one do not reach from the start to the end.
    """
    readings = [
        [(each.taken_ns, each.sample) for each in track.readings if each.sample is not None]
        for track in gpu_tracks(scrapes)
    ]
    counted = [
        _grown([(at, gpu.energy_j) for at, gpu in gpus if gpu.energy_j is not None], start_ns, end_ns)
        for gpus in readings
    ]
    drawn = [
        _area([(at, gpu.power_w) for at, gpu in gpus if gpu.power_w is not None], start_ns, end_ns) for gpus in readings
    ]
    for origin, parts in ((EnergyOrigin.COUNTER, counted), (EnergyOrigin.POWER, drawn)):
        known = [part for part in parts if part is not None]
        if known and len(known) == len(parts):
            return Energy(energy_j=sum(known), gpus=len(parts), origin=origin)
    return None


def _grown(points: _Points, start_ns: int, end_ns: int) -> float | None:
    """What a counter grew by, taken to grow evenly between its readings."""
    inside = _clipped(points, start_ns, end_ns)
    if inside is None or any(after < before for (_, before), (_, after) in pairwise(inside)):
        return None
    return inside[-1][1] - inside[0][1]


def _area(points: _Points, start_ns: int, end_ns: int) -> float | None:
    """The area under a value, its unit times seconds, by the trapezoid rule."""
    inside = _clipped(points, start_ns, end_ns)
    if inside is None:
        return None
    return sum((one + other) / 2 * seconds(after - before) for (before, one), (after, other) in pairwise(inside))


def _clipped(points: _Points, start_ns: int, end_ns: int) -> _Points | None:
    """The points of a span with those on its ends put in; None when the points do not reach that far."""
    if not points or points[0][0] > start_ns or points[-1][0] < end_ns:
        return None
    between = [point for point in points if start_ns < point[0] < end_ns]
    return [(start_ns, _at(points, start_ns)), *between, (end_ns, _at(points, end_ns))]


def _at(points: _Points, instant_ns: int) -> float:
    """The value at an instant that the points reach, on the straight line between its neighbours."""
    for (before, one), (after, other) in pairwise(points):
        if before <= instant_ns <= after and after > before:
            return one + (other - one) * (instant_ns - before) / (after - before)
    return points[0][1]
