"""Stored runs as OpenMetrics with their own time stamps, for `promtool tsdb create-blocks-from openmetrics`.

The metrics are those of the live page, as scrapes while the run was under way would have found them.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from loadgen.adapters.prometheus.capacity import EndedSearch, capacity_series
from loadgen.adapters.prometheus.families import RUN_INFO, VALID, families_of, load_series, total_series
from loadgen.adapters.prometheus.levels import level_of, level_series
from loadgen.adapters.prometheus.series import Family, Labels, Series, Spec
from loadgen.adapters.prometheus.text import openmetrics_pieces
from loadgen.core.metrics.summary import Summary
from loadgen.core.metrics.totals import Totals, ended_ns
from loadgen.core.record import RequestRecord
from loadgen.core.run import RunManifest
from loadgen.core.units import NS_PER_S

_MOST_STEPS, _MOST_STEPS_IN_ALL, _FEWEST_STEPS = 600, 6000, 20
_BATCH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One stored run. `records` are read twice and never held."""

    labels: Labels
    manifest: RunManifest
    summary: Summary
    records: Callable[[], Iterable[RequestRecord]]


def backfill(runs: Sequence[FinishedRun], info: Mapping[str, str], search: EndedSearch | None = None) -> Iterator[str]:
    """The runs in the order of their times, in pieces; `search` is what they are the probes of, told at its end.

    Totals begin at 0 with each run: that is a counter's reset to Prometheus. A step lasts a whole number of seconds,
    such that a run has at most 600 and an export not many more than 6,000; a run's first and last instant are always
    there.
    """
    most = min(_MOST_STEPS, max(_FEWEST_STEPS, _MOST_STEPS_IN_ALL // len(runs)))
    ordered = sorted(runs, key=lambda run: run.manifest.origin_unix_ns)
    found = () if search is None else capacity_series(search, _unix_s(round(search.ended_unix_s * NS_PER_S)))
    families = families_of(chain((pair for run in ordered for pair in _series_of(run, info, most)), found))
    return openmetrics_pieces(map(_in_series, families))


def _in_series(family: Family) -> Family:
    """All samples of a series together, as the form demands."""
    return replace(family, series=tuple(sorted(family.series, key=lambda series: tuple(series.labels.items()))))


def _series_of(run: FinishedRun, info: Mapping[str, str], most_steps: int) -> Iterator[tuple[Spec, Series]]:
    origin_ns, load = run.manifest.origin_unix_ns, run.manifest.load
    sent, ended = _instants(run.records())
    steps = _steps(int(ended.max(initial=0)), most_steps)
    totals = Totals()
    for step_ns, more in zip(steps, _by_step(run.records(), steps, origin_ns), strict=True):
        totals.add(more)
        unix_s = _unix_s(origin_ns + step_ns)
        in_flight = int(np.sum((sent >= 0) & (sent <= step_ns) & (ended > step_ns)))
        yield from total_series(run.labels, totals.as_counted(), unix_s)
        yield from load_series(run.labels, load, in_flight, unix_s)
        yield RUN_INFO, Series(labels=info, value=1, unix_s=unix_s)
    last_s = _unix_s(origin_ns + steps[-1])
    yield from level_series(level_of(run.labels, load), run.summary, last_s)
    yield VALID, Series(labels=run.labels.as_dict(), value=int(run.summary.verdict.valid), unix_s=last_s)


def _instants(records: Iterable[RequestRecord]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When requests were sent, -1 for never, and when they were over, ns."""
    sent, ended = array("q"), array("q")
    for record in records:
        sent.append(-1 if record.sent_ns is None else record.sent_ns)
        ended.append(ended_ns(record))
    return np.array(sent, dtype=np.int64), np.array(ended, dtype=np.int64)


def _by_step(records: Iterable[RequestRecord], steps: Sequence[int], origin_ns: int) -> list[Totals]:
    """What was over within each step, up to its instant."""
    found, waiting = [Totals() for _ in steps], [list[RequestRecord]() for _ in steps]
    for record in records:
        step = bisect_left(steps, ended_ns(record))
        waiting[step].append(record)
        if len(waiting[step]) == _BATCH:
            found[step].observe(waiting[step], origin_unix_ns=origin_ns)
            waiting[step].clear()
    for totals, rest in zip(found, waiting, strict=True):
        totals.observe(rest, origin_unix_ns=origin_ns)
    return found


def _steps(end_ns: int, most: int) -> list[int]:
    """Instants of a run's samples, ns."""
    step_ns = max(1, math.ceil(end_ns / NS_PER_S / most)) * NS_PER_S
    return [*range(0, end_ns, step_ns), end_ns]


def _unix_s(unix_ns: int) -> float:
    """To the millisecond, which is what Prometheus stores, and rounded up: a sample never shows what came after it."""
    return math.ceil(unix_ns / 1e6) / 1e3
