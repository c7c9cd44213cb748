"""The span in which the load stayed on its plateau."""

import numpy as np
from numpy.typing import NDArray

PLATEAU_RATIO = 0.9
"""A level counts as on the plateau from this share of it on."""


def longest_run(wanted: NDArray[np.bool_]) -> tuple[int, int] | None:
    """[begin, end) of the longest unbroken stretch of true, the first of equals; None when there is none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], wanted, [False]]).astype(np.int8)))
    if not len(edges):
        return None
    begins, ends = edges[::2], edges[1::2]
    best = int(np.argmax(ends - begins))
    return int(begins[best]), int(ends[best])


def outer_span(wanted: NDArray[np.bool_]) -> tuple[int, int] | None:
    """[begin, end) from the first true to the last, whatever lies between; None when there is none."""
    places = np.flatnonzero(wanted)
    return (int(places[0]), int(places[-1]) + 1) if len(places) else None


def plateau(levels: NDArray[np.float64], *, closed_loop: bool) -> tuple[int, int] | None:
    """[begin, end) of the bins in which mean concurrency stayed at `PLATEAU_RATIO` of its plateau or above.

    A closed loop holds its number, so the plateau is the highest bin and the span the longest unbroken stretch. In an
    open loop concurrency wanders around its mean: the plateau is the mean over all bins, and the span runs from the
    first bin that reaches it to the last. None when nothing was in flight.
    """
    if not len(levels) or levels.max() <= 0:
        return None
    if closed_loop:
        return longest_run(levels >= PLATEAU_RATIO * levels.max())
    return outer_span(levels >= PLATEAU_RATIO * levels.mean())
