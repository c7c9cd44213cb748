"""From a run's records and its summary to what the search makes of it."""

from collections.abc import Iterable, Mapping

import numpy as np

from loadgen.core.analysis.columns import Columns, Floats, Mask, Table
from loadgen.core.analysis.findings.kinds import FindingKind, Severity
from loadgen.core.analysis.window import due_of, window_of
from loadgen.core.capacity.evidence import Evidence
from loadgen.core.capacity.probe import Excerpt, Miss, Run, Shortfall
from loadgen.core.metrics.summary import Summary
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.run import RunManifest, TimingSource
from loadgen.core.units import duration_text

SETTLED_TURNOVERS = 5.0
"""A window shorter than so many times the mean latency has not shown what the load leads to."""

NAMED_REQUESTS = 5
"""So many of the requests that missed are named."""

_UNSETTLED = (FindingKind.WARMUP_DRIFT, FindingKind.NOT_STEADY, FindingKind.SHORT_WINDOW)
_CUT_SHORT = {
    "interrupt": "the run was interrupted",
    "refused": "the server refused every request",
    "unreachable": "the server could not be reached any more",
}
_SHOWN = ("ttft_s", "tpot_s", "e2el_s")


def run_of(records: Iterable[RequestRecord], manifest: RunManifest, summary: Summary, *, target_ratio: float) -> Run:
    """What one run showed, from records in any order; `target_ratio` is the attainment that is asked for."""
    columns = Columns(manifest.slo)
    for record in records:
        columns.observe(record)
    table = columns.table()
    due = np.flatnonzero(due_of(table, manifest.window or window_of(table)))
    due = due[np.argsort(table.started_ns[due], kind="stable")]
    good = table.good[due]
    found = {finding.kind: finding.evidence for finding in summary.verdict.findings}
    invalid = [
        finding.evidence
        for finding in summary.verdict.findings
        if finding.severity == Severity.INVALID and finding.kind != FindingKind.NO_COMPLETION
    ]
    return Run(
        run_id=manifest.run_id,
        evidence=Evidence.of(good),
        summary=_excerpt(summary, manifest.slo),
        shortfall=_shortfall(table, due, good, manifest.slo, target_ratio),
        invalid=invalid[0] if invalid else None,
        slowed=_slowed(summary, found),
        overloaded=found.get(FindingKind.OVERLOADED),
        unsettled=_unsettled(summary, found),
        cut_short=_cut_short(manifest),
    )


def _cut_short(manifest: RunManifest) -> str | None:
    if manifest.ended_by is None:
        return "the run was killed"
    if manifest.interrupted:
        return _CUT_SHORT["interrupt"]
    return _CUT_SHORT.get(manifest.ended_by)


def _slowed(summary: Summary, found: Mapping[str, str]) -> str | None:
    """Stamps that are late. A busy client does no harm by itself where the kernel stamps what it reads late."""
    kinds = [FindingKind.STALLED_STAMPS]
    if summary.client.timing_source != TimingSource.KERNEL:
        kinds.append(FindingKind.CLIENT_BUSY)
    evidence = next((found[kind] for kind in kinds if kind in found), None)
    return None if evidence is None else f"the misses may be the load generator's own: {evidence}"


def _unsettled(summary: Summary, found: Mapping[str, str]) -> str | None:
    latency, window = summary.latency.e2el_s.mean, summary.window
    if latency is not None and window is not None and window.end_s - window.start_s < SETTLED_TURNOVERS * latency:
        return (
            f"the window of {duration_text(window.end_s - window.start_s)} is shorter than"
            f" {SETTLED_TURNOVERS:g} requests of {duration_text(latency)}"
        )
    return next((found[kind] for kind in _UNSETTLED if kind in found), None)


def _excerpt(summary: Summary, objectives: Mapping[str, float]) -> Excerpt:
    window = summary.window
    return Excerpt(
        requests=summary.requests,
        requests_per_s=summary.throughput.requests_per_s,
        output_tokens_per_s=summary.throughput.output_tokens_per_s,
        concurrency_mean=summary.concurrency.mean,
        window_s=None if window is None else window.end_s - window.start_s,
        latency={name: getattr(summary.latency, name) for name in dict.fromkeys((*_SHOWN, *objectives))},
        findings=summary.verdict.findings,
    )


def _shortfall(
    table: Table, due: np.ndarray, good: Mask, objectives: Mapping[str, float], target_ratio: float
) -> Shortfall | None:
    """What the due requests, in order, that were not good have in common; None when all were."""
    if good.all():
        return None
    completed = table.has(Outcome.COMPLETED)[due]
    tokens = table["input_tokens"][due]
    thirds = [int(np.count_nonzero(~part)) for part in np.array_split(good, 3)]
    return Shortfall(
        bad=int(np.count_nonzero(~good)),
        lost=int(np.count_nonzero(~completed)),
        misses=tuple(
            _miss(name, limit_s, table[name][due], completed, target_ratio) for name, limit_s in objectives.items()
        ),
        by_third=(thirds[0], thirds[1], thirds[2]),
        seqs=tuple(int(seq) for seq in table["seq"][due][~good][:NAMED_REQUESTS]),
        input_tokens_bad_p50=_median(tokens[~good]),
        input_tokens_good_p50=_median(tokens[good]),
    )


def _miss(name: str, limit_s: float, values: Floats, completed: Mask, target_ratio: float) -> Miss:
    known = completed & ~np.isnan(values)
    ascending = np.sort(np.where(known, values, np.inf))
    needed = float(ascending[int(np.ceil(target_ratio * len(ascending) - 1e-9)) - 1])
    return Miss(
        metric=name,
        limit_s=limit_s,
        over=int(np.count_nonzero(known & (values > limit_s))),
        without_value=int(np.count_nonzero(completed & np.isnan(values))),
        needed_s=needed if np.isfinite(needed) else None,
    )


def _median(values: Floats) -> float | None:
    values = values[~np.isnan(values)]
    return float(np.median(values)) if len(values) else None
