"""A part of a trace, at another speed: values in, values out; conversations stay whole."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from loadgen.core.errors import ConfigError
from loadgen.core.traces.row import LARGEST_TIME_NS, Reason
from loadgen.core.traces.table import UNKNOWN, Bools, Ints, Table
from loadgen.core.units import NS_PER_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What to use of a trace, applied in this order.

    `max_context_tokens`: a conversation ends before its first turn whose input and output exceed it.
    [`from_s`, `to_s`): conversations that begin in that window, seconds after the first row.
    `thin_ratio`: this share of conversations, drawn by `seed`.
    `limit`: the first conversations that together have at most that many requests; at least one conversation.
    `spread`: arrivals with equal time stamps are drawn, by `seed`, over the step of the recording's clock.
    `speed`: times after the first arrival, and think times, are divided by it.
    """

    max_context_tokens: int | None = None
    from_s: float | None = None
    to_s: float | None = None
    thin_ratio: float | None = None
    limit: int | None = None
    spread: bool = False
    speed: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises ConfigError for a value out of range."""
        if self.max_context_tokens is not None and self.max_context_tokens < 1:
            raise ConfigError(f"max context: expected at least 1 token, got {self.max_context_tokens}")
        if self.from_s is not None and not 0 <= self.from_s < math.inf:
            raise ConfigError(f"from: expected a time of zero or more, got {self.from_s}")
        if self.to_s is not None and not self.to_s > (self.from_s or 0):
            raise ConfigError(f"to: expected a time after {self.from_s or 0:g} s, got {self.to_s:g} s")
        if self.thin_ratio is not None and not 0 < self.thin_ratio <= 1:
            raise ConfigError(f"thin: expected a share above 0 and up to 1, got {self.thin_ratio}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit: expected at least 1 request, got {self.limit}")
        if not 0 < self.speed < math.inf:
            raise ConfigError(f"speed: expected a factor above 0, got {self.speed}")

    @property
    def needs_times(self) -> bool:
        """Whether it can be taken of a trace with time stamps only."""
        return self.from_s is not None or self.to_s is not None or self.spread or self.speed != 1


def cut(table: Table, part: Part, *, resolution_ns: int) -> tuple[Table, dict[Reason, int]]:
    """That part of the table, and how many rows each step left out.

    `resolution_ns` is the step of the recording's clock, used by `spread`. Times of the result begin at 0. Raises
    ConfigError when times are needed and there are none.
    """
    if part.needs_times and table.time_ns is None:
        raise ConfigError("a window, a speed or a spread needs a time stamp in every row, and this file has not")
    dropped: dict[Reason, int] = {}

    def keep(table: Table, places: Bools, reason: Reason) -> Table:
        lost = int(len(places) - np.count_nonzero(places))
        if lost:
            dropped[reason] = dropped.get(reason, 0) + lost
        return table.kept(places)

    if part.max_context_tokens is not None:
        table = keep(table, _within_context(table, part.max_context_tokens), Reason.OVER_CONTEXT)
    if table.time_ns is not None and (part.from_s is not None or part.to_s is not None):
        arrival = table.time_ns[table.order[table.starts[:-1]]]
        inside = arrival >= (part.from_s or 0) * NS_PER_S
        if part.to_s is not None:
            inside &= arrival < part.to_s * NS_PER_S
        table = keep(table, table.per_place(inside), Reason.OUTSIDE_WINDOW)
    if part.thin_ratio is not None:
        random = np.random.Generator(np.random.PCG64(part.seed))
        drawn = random.random(table.conversations) < part.thin_ratio
        table = keep(table, table.per_place(drawn), Reason.THINNED)
    if part.limit is not None and table.conversations:
        requests = np.add.reduceat(table.requests[table.order].astype(np.int64), table.starts[:-1])
        within = np.cumsum(requests) <= part.limit
        within[0] = True
        table = keep(table, table.per_place(within), Reason.OVER_LIMIT)
    if table.time_ns is not None and len(table.order):
        time = table.time_ns - table.time_ns[table.order].min()
        if part.spread:
            time = _spread(time, table.order, resolution_ns, part.seed)
        if part.speed != 1:
            if float(time[table.order].max()) > LARGEST_TIME_NS * part.speed:
                raise ConfigError(f"speed: at {part.speed:g} the trace would last longer than 292 years")
            time = np.rint(time / part.speed).astype(np.int64)
        table = replace(table, time_ns=time, speed=table.speed * part.speed)
    return table, dropped


def resolution_ns(times: Ints, unit_ns: int) -> int:
    """The step of the clock that stamped these times (ns, sorted): the format's unit, or a grid that they stand on.

    More than half of the rows sharing another's time means a grid; its step is the median gap between distinct times.
    """
    gaps = np.diff(times)
    gaps = gaps[gaps > 0]
    if not len(gaps) or (len(gaps) + 1) * 2 > len(times):
        return unit_ns
    return max(unit_ns, int(np.median(gaps)))


def _within_context(table: Table, limit: int) -> Bools:
    inputs, outputs = table.input_tokens[table.order], table.output_tokens[table.order]
    needed = inputs.astype(np.int64) + np.where(outputs == UNKNOWN, 0, outputs)
    over = (needed > limit) & (inputs != UNKNOWN)
    seen = np.cumsum(over)
    before = seen - over
    within: Bools = (seen - table.per_place(before[table.starts[:-1]])) == 0
    return within


def _spread(time: Ints, order: Ints, resolution_ns: int, seed: int) -> NDArray[np.int64]:
    """Equal times drawn apart, uniformly and sorted, up to the next time stamp but no further than the resolution."""
    random = np.random.Generator(np.random.PCG64([seed, 1]))
    by_time = order[np.argsort(time[order], kind="stable")]
    stamps, group, counts = np.unique(time[by_time], return_inverse=True, return_counts=True)
    width = np.minimum(np.append(np.diff(stamps), resolution_ns), resolution_ns)
    draws = random.random(len(by_time))
    draws = draws[np.lexsort((draws, group))]
    shift = np.where(counts[group] > 1, draws * width[group], 0)
    spread: NDArray[np.int64] = time.astype(np.int64)
    spread[by_time] += shift.astype(np.int64)
    first: np.int64 = spread[order].min()
    return spread - first
