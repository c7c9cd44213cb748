"""The ratio of one metric between two arms at one level, paired by request where they had the same requests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from loadgen.core.analysis.columns import Floats, Mask
from loadgen.core.comparison.cell import LATENCIES, RATES, Cell
from loadgen.core.errors import ConfigError
from loadgen.core.metrics.catalogue import CATALOGUE, Better
from loadgen.core.stats.bootstrap import Estimate
from loadgen.core.stats.influence import LogStatistic, log_mean, log_quantile, log_ratio_of_means
from loadgen.core.stats.log_ratio import LogRatio, independent_log_ratio, log_ratio

MIN_PAIRED_REQUESTS = {"mean": 10, "p50": 50, "p99": 500}
"""Requests from which on the interval of a ratio of such a statistic covers as often as it says; a rate is a mean."""

METRICS = (*(f"{name}.{statistic}" for name in LATENCIES for statistic in MIN_PAIRED_REQUESTS), *RATES)
"""What an experiment compares, by name."""

MIN_REQUESTS = MIN_PAIRED_REQUESTS | {"p90": 100, "p95": 200}
"""The same of every statistic that two runs may be compared by."""

_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


class Note(StrEnum):
    """What the reader of a ratio has to know."""

    ONE_START = "one start of each arm: how much one start differs from the next is not in the interval"
    FIXED_RATE = "requests came at a fixed rate: what both arms can serve, both do"
    OTHER_REQUESTS = "the runs sent other requests: which ones each drew is in the interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """arm / baseline of one metric at one level.

    `left_out_ratio` is the share of the requests that lack the metric in some run and are therefore left out of all. A
    rate is of the whole run; there they are only left out of its interval.
    """

    metric: str
    level: float
    log_ratio: LogRatio
    left_out_ratio: float
    notes: tuple[Note, ...]

    @property
    def estimate(self) -> Estimate:
        """With its 95 % interval."""
        return self.log_ratio.estimate()

    @property
    def speedup(self) -> LogRatio:
        """The same so that above 1 the arm is better: baseline / arm where lower is better."""
        lower = CATALOGUE[self.metric.partition(".")[0]].better is Better.LOWER
        return self.log_ratio.inverse() if lower else self.log_ratio


def ratio(baseline: Sequence[Cell], arm: Sequence[Cell], metric: str) -> Ratio | None:
    """The ratio of `metric` from the cells of one level, one of each arm for each repeat.

    It is a rate of `RATES`, or a column of the cells with a statistic: the mean, p50, p90, p95 or p99. A latency is
    that of requests which have it in every run: the geometric mean over the repeats of the ratio of their means, or of
    their percentiles. A rate is the run's own; its requests only say how far it is due to their choice.

    None when too few requests are left (`MIN_PAIRED_REQUESTS`); when a run has no such rate, or one of 0; and for the
    rates of one start in an open loop, where requests say nothing of how they vary. Raises ConfigError when the cells
    do not belong together.
    """
    sides = [sorted(side, key=lambda cell: cell.repeat) for side in (baseline, arm)]
    cells = sides[0] + sides[1]
    _check_pairs(*sides)
    name, _, statistic = metric.partition(".")
    is_rate, closed_loop = name in RATES, cells[0].closed_loop
    if is_rate and not closed_loop and len(arm) == 1:
        return None
    kept = np.logical_and.reduce([_has_value(cell, name) for cell in cells])
    if np.count_nonzero(kept) < MIN_REQUESTS[statistic or "mean"]:
        return None
    found = [[_statistic(cell, metric, kept) for cell in side] for side in sides]
    known = [[each for each in side if each is not None] for side in found]
    if any(len(side) < len(arm) for side in known):
        return None
    notes = []
    if len(arm) == 1:
        notes.append(Note.ONE_START)
    if is_rate and not closed_loop:
        notes.append(Note.FIXED_RATE)
    return Ratio(
        metric=metric,
        level=cells[0].level,
        log_ratio=log_ratio(*known),
        left_out_ratio=1 - float(kept.mean()),
        notes=tuple(notes),
    )


def unpaired_ratio(baseline: Cell, arm: Cell, metric: str) -> Ratio | None:
    """The ratio of one run over another that sent other requests, of the same kind; metrics as for `ratio`.

    None when one of them has too few requests, no such rate or one of 0; and for the rates of an open loop.
    """
    name, _, statistic = metric.partition(".")
    if name in RATES and not (baseline.closed_loop and arm.closed_loop):
        return None
    kept = [_has_value(cell, name) for cell in (baseline, arm)]
    if min(map(np.count_nonzero, kept)) < MIN_REQUESTS[statistic or "mean"]:
        return None
    first, second = (_statistic(cell, metric, has) for cell, has in zip((baseline, arm), kept, strict=True))
    if first is None or second is None:
        return None
    return Ratio(
        metric=metric,
        level=arm.level,
        log_ratio=independent_log_ratio(first, second),
        left_out_ratio=1 - float(np.concatenate(kept).mean()),
        notes=(Note.ONE_START, Note.OTHER_REQUESTS),
    )


def _check_pairs(baseline: Sequence[Cell], arm: Sequence[Cell]) -> None:
    repeats = [[cell.repeat for cell in side] for side in (baseline, arm)]
    if not repeats[0] or repeats[0] != repeats[1] or len(set(repeats[0])) < len(repeats[0]):
        raise ConfigError(f"expected one run of each arm for each repeat, got repeats {repeats[0]} and {repeats[1]}")
    first = baseline[0]
    for cell in (*baseline, *arm):
        if cell.level != first.level:
            raise ConfigError(f"{first} and {cell} are not of one level")
        if not np.array_equal(cell.seq, first.seq):
            common = len(np.intersect1d(cell.seq, first.seq))
            raise ConfigError(
                f"{first} and {cell} did not send the same requests: of {len(first.seq)} and {len(cell.seq)}"
                f" they have {common} in common. Give levels a number of requests, not a duration"
            )


def _has_value(cell: Cell, name: str) -> Mask:
    if name in RATES:
        return (cell.columns["e2el_s"] > 0) & np.isfinite(_brought(cell, name))
    return cell.columns[name] > 0


def _statistic(cell: Cell, metric: str, kept: Mask) -> LogStatistic | None:
    name, _, statistic = metric.partition(".")
    return _rate(cell, name, kept) if name in RATES else _latency(cell, name, statistic, kept)


def _latency(cell: Cell, name: str, statistic: str, kept: Mask) -> LogStatistic:
    values = cell.columns[name][kept]
    return log_quantile(values, _SHARES[statistic]) if statistic in _SHARES else log_mean(values)


def _rate(cell: Cell, name: str, kept: Mask) -> LogStatistic | None:
    """The run's own rate, with the influence that each request has on it; None for no rate, or one of 0.

    In a closed loop every slot holds a request at all times, so by Little's law a rate is the number of slots times
    what a request brings over how long it takes. At a fixed rate of arrivals it follows what a request brings alone.
    """
    rate, brought = cell.rates[name], _brought(cell, name)[kept]
    if not rate or not brought.any():
        return None
    by_request = log_ratio_of_means(brought, cell.columns["e2el_s"][kept]) if cell.closed_loop else log_mean(brought)
    return replace(by_request, log=math.log(rate))


def _brought(cell: Cell, name: str) -> Floats:
    if name == "output_tokens_per_s":
        return cell.columns["output_tokens"]
    return cell.good.astype(np.float64) if name == "goodput_rps" else np.ones(len(cell.seq))
