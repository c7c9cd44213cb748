"""Stored runs as OpenMetrics with their own time stamps, for `promtool tsdb create-blocks-from openmetrics`.

The metrics are those of the live page, as scrapes while the run was under way would have found them.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from loadgen.adapters.prometheus.families import (
    RUN_INFO,
    VALID,
    Family,
    Labels,
    Series,
    Spec,
    families_of,
    level_of,
    level_series,
    load_series,
    total_series,
)
from loadgen.adapters.prometheus.text import openmetrics_pieces
from loadgen.core.metrics.summary import Summary
from loadgen.core.metrics.totals import Totals, ended_ns
from loadgen.core.record import RequestRecord
from loadgen.core.run import RunManifest
from loadgen.core.units import NS_PER_S

_MOST_STEPS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One stored run. `records` are read once."""

    labels: Labels
    manifest: RunManifest
    summary: Summary
    records: Iterable[RequestRecord]


def backfill(runs: Iterable[FinishedRun], info: dict[str, str]) -> Iterator[str]:
    """The runs in the order of their times, in pieces.

    Totals begin at 0 with each run: that is a counter's reset to Prometheus. A step lasts a whole number of seconds,
    such that one run has at most 600; a run's first and last instant are always there.
    """
    ordered = sorted(runs, key=lambda run: run.manifest.origin_unix_ns)
    pairs = [pair for run in ordered for pair in _series_of(run, info)]
    yield from openmetrics_pieces(map(_in_series, families_of(pairs)))


def _in_series(family: Family) -> Family:
    """All samples of a series together, as the form demands."""
    return replace(family, series=tuple(sorted(family.series, key=lambda series: tuple(series.labels.items()))))


def _series_of(run: FinishedRun, info: dict[str, str]) -> Iterator[tuple[Spec, Series]]:
    records = sorted(((ended_ns(record), record) for record in run.records), key=itemgetter(0))
    origin_ns = run.manifest.origin_unix_ns
    sent = np.sort(np.array([r.sent_ns for _, r in records if r.sent_ns is not None], dtype=np.int64))
    closed = np.sort(np.array([at for at, r in records if r.sent_ns is not None], dtype=np.int64))
    totals, taken = Totals(), 0
    for step_ns in _steps(records[-1][0] if records else 0):
        until = taken
        while until < len(records) and records[until][0] <= step_ns:
            until += 1
        totals.observe((record for _, record in records[taken:until]), origin_unix_ns=origin_ns)
        taken = until
        unix_s = _unix_s(origin_ns + step_ns)
        in_flight = int(np.searchsorted(sent, step_ns, "right") - np.searchsorted(closed, step_ns, "right"))
        yield from total_series(run.labels, totals.copy(), unix_s)
        yield from load_series(run.labels, run.manifest.load, in_flight, unix_s)
        yield RUN_INFO, Series(labels=info, value=1, unix_s=unix_s)
    yield from level_series(level_of(run.labels, run.manifest.load), run.summary, unix_s)
    yield VALID, Series(labels=run.labels.as_dict(), value=int(run.summary.verdict.valid), unix_s=unix_s)


def _steps(end_ns: int) -> list[int]:
    """Instants of a run's samples, ns."""
    step_ns = max(1, math.ceil(end_ns / NS_PER_S / _MOST_STEPS)) * NS_PER_S
    return [*range(0, end_ns, step_ns), end_ns]


def _unix_s(unix_ns: int) -> float:
    """To the millisecond, which is what Prometheus stores, and rounded up: a sample never shows what came after it."""
    return math.ceil(unix_ns / 1e6) / 1e3
