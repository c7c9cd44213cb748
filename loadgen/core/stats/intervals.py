"""How many intervals are open at an instant: requests in flight."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """The number of open intervals [start, end) as a step function: `levels[i]` holds on [times[i], times[i + 1]).

    Half-open intervals mean that at equal instants ends come before starts: requests that follow one another without a
    gap are one in flight, not two. `area[i]` is the integral up to `times[i]`.
    """

    times: Floats
    levels: NDArray[np.int64]
    area: Floats

    @classmethod
    def of(cls, starts: Floats, ends: Floats) -> "InFlight":
        """From starts and ends in ns; pairs with a NaN (never sent, never closed) or without extent are left out."""
        real = ends > starts
        starts, ends = starts[real], ends[real]
        times, place = np.unique(np.concatenate([starts, ends]), return_inverse=True)
        steps = np.repeat(np.array([1, -1]), len(starts))
        change = np.zeros(len(times), dtype=np.int64)
        np.add.at(change, place, steps)
        levels = np.cumsum(change)
        area = np.concatenate([np.zeros(1), np.cumsum(levels[:-1] * np.diff(times))]) if len(times) else np.zeros(0)
        return cls(times=times, levels=levels, area=area)

    def peak(self, start: float, end: float) -> int:
        """The largest number open at any instant of [start, end)."""
        first = max(0, int(np.searchsorted(self.times, start, side="right")) - 1)
        last = int(np.searchsorted(self.times, end, side="left"))
        return int(self.levels[first:last].max(initial=0))

    def means(self, edges: Floats) -> Floats:
        """The time-weighted mean between each pair of neighbouring edges, which must ascend strictly."""
        if not len(self.times):
            return np.zeros(len(edges) - 1)
        means: Floats = np.diff(np.interp(edges, self.times, self.area)) / np.diff(edges)
        return means

    def mean(self, start: float, end: float) -> float | None:
        """The time-weighted mean over [start, end); None for an empty span."""
        return float(self.means(np.array([start, end]))[0]) if end > start else None
