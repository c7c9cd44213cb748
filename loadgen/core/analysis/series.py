"""The run over time, warm-up and drain included, in at most `MOST_BINS` bins."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from loadgen.core.analysis.columns import Mask, Table
from loadgen.core.metrics.summary import TimeSeries
from loadgen.core.record import Outcome
from loadgen.core.stats.intervals import InFlight
from loadgen.core.stats.quantiles import percentiles
from loadgen.core.units import NS_PER_S

Floats = NDArray[np.float64]

MOST_BINS = 3600
"""A bin is one second; it doubles until no more than this many are needed."""


def bin_edges_ns(table: Table) -> Floats:
    """Edges of the bins from the first start to the last close, the last bin cut there; empty when nothing happened."""
    starts = table.started_ns
    starts = starts[~np.isnan(starts)]
    if not len(starts):
        return np.empty(0)
    start = float(starts.min())
    closed = table["closed_ns"]
    end = max(float(starts.max()), float(closed[~np.isnan(closed)].max(initial=start))) + 1
    step = float(NS_PER_S)
    while end - start > MOST_BINS * step:
        step *= 2
    return np.append(np.arange(start, end, step), end)


def time_series(table: Table, edges_ns: Floats, in_flight: InFlight, output_tokens: Floats) -> TimeSeries | None:
    """Counts a bin and the mean concurrency in it; None when nothing happened. The last bin may be the shorter one."""
    if not len(edges_ns):
        return None
    bins = len(edges_ns) - 1
    step_ns = edges_ns[1] - edges_ns[0] if bins > 1 else NS_PER_S
    completed = table.has(Outcome.COMPLETED)
    sent_bin = _bin_of(table["sent_ns"], edges_ns)
    ttft = _percentiles(table["ttft_s"], completed, sent_bin, bins)
    tpot = _percentiles(table["tpot_s"], completed, sent_bin, bins)
    return TimeSeries(
        start_s=float(edges_ns[0]) / NS_PER_S,
        step_s=float(step_ns) / NS_PER_S,
        due=_counts(table["due_ns"], edges_ns),
        sent=_counts(table["sent_ns"], edges_ns),
        completed=_counts(table["closed_ns"][completed], edges_ns),
        failed=_counts(table["closed_ns"][table.has(Outcome.FAILED)], edges_ns),
        output_tokens=tuple(output_tokens.tolist()),
        concurrency=tuple(in_flight.means(edges_ns).tolist()),
        ttft_p50_s=tuple(each.get("p50") for each in ttft),
        ttft_p95_s=tuple(each.get("p95") for each in ttft),
        tpot_p50_s=tuple(each.get("p50") for each in tpot),
    )


def _bin_of(instants_ns: Floats, edges_ns: Floats) -> NDArray[np.int64]:
    """Each instant's bin; an instant that is NaN gets a bin past the last."""
    return np.searchsorted(edges_ns, instants_ns, side="right") - 1


def _counts(instants_ns: Floats, edges_ns: Floats) -> tuple[int, ...]:
    return tuple(np.histogram(instants_ns[~np.isnan(instants_ns)], bins=edges_ns)[0].tolist())


def _percentiles(
    values: Floats, population: Mask, bins: NDArray[np.int64], count: int
) -> list[dict[str, float | None]]:
    """Per bin the percentiles of its values; an empty mapping where there are none."""
    there = population & ~np.isnan(values)
    order = np.lexsort((values[there], bins[there]))
    values, bins = values[there][order], bins[there][order]
    borders = np.searchsorted(bins, np.arange(count + 1))
    return [percentiles(values[begin:end]) if end > begin else {} for begin, end in pairwise(borders)]
