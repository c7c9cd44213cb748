"""From a run's records and manifest to its summary, curves and failures.

Populations, once for all: latencies and token totals are of completed requests of the measured phase, schedule lag and
cap wait of all measured requests that were sent. Throughput and concurrency are of the window, whatever phase the
request belongs to, since in the window a server also serves what warm-up left in flight; offered and sent rates and
objectives are of measured requests. Tokens count when they arrive; what failed or cancelled requests had streamed is
`partial_output`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from loadgen.core.analysis.arrivals import Arrivals
from loadgen.core.analysis.findings.judge import judge
from loadgen.core.analysis.sections import Sections, plateau_of
from loadgen.core.analysis.series import bin_edges_ns, time_series
from loadgen.core.analysis.server import server_of
from loadgen.core.analysis.tallies import Tallies
from loadgen.core.analysis.window import window_of
from loadgen.core.metrics.distribution import curve, distribution
from loadgen.core.metrics.summary import Analysis, Summary, Verdict
from loadgen.core.record import RequestRecord
from loadgen.core.run import RunManifest
from loadgen.core.server.believable import believable, refused_readings
from loadgen.core.server.sample import Scrape
from loadgen.core.server.series import server_series
from loadgen.core.speculation.server_side import server_side
from loadgen.core.stats.intervals import InFlight
from loadgen.core.stats.quantiles import ESTIMATOR
from loadgen.core.stats.sample import merged
from loadgen.core.units import NS_PER_S

_CURVES = ("ttft_s", "ttft_from_due_s", "tpot_s", "e2el_s")


def analyse(
    records: Callable[[], Iterable[RequestRecord]],
    manifest: RunManifest,
    scrapes: Callable[[], Iterable[Scrape]] = tuple,
) -> Analysis:
    """The analysis of one run, from its records and, where there are any, the pages that were read of its server.

    `records` gives the records from the start, in any order, each time it is called; `scrapes` the pages likewise.

    Memory is a few hundred bytes a request and four bytes a gap between events. A run without requests, or one in which
    all failed, has a complete summary with None for what has no value. Raises InternalError when a request has two
    records or there are more records than requests were planned.
    """
    run = Tallies(manifest)
    for record in records():
        run.observe(record)
    table = run.columns.table()
    window = manifest.window or window_of(table, exhausted_ns=manifest.exhausted_ns)
    in_flight = InFlight.of(table["sent_ns"], table["closed_ns"])
    plateau_ns = None if window is None else plateau_of(table, window, in_flight, manifest)

    edges_ns = bin_edges_ns(table)
    spans_ns = [(span.start_ns, span.end_ns) for span in (window, plateau_ns) if span is not None]
    arrivals = Arrivals(edges_ns, spans_ns)
    for record in records():
        arrivals.observe(record)

    sections = Sections(
        manifest=manifest, table=table, window=window, plateau=plateau_ns, in_flight=in_flight, arrivals=arrivals
    )
    one_token = run.gaps.one_token.ascending()
    gaps = merged(one_token, run.gaps.others.ascending()) if len(run.gaps.others) else one_token
    completed = int(np.count_nonzero(sections.completed))
    counts, missing_records = sections.counts(run)
    all_recorded = manifest.interrupted is not None and missing_records == 0
    pages = tuple(scrapes())
    read = tuple(map(believable, pages))
    speculation = run.acceptance.result(
        server_side(lambda: read, window, sections.in_flight_ns(), all_recorded=all_recorded)
    )
    icl = distribution(gaps, missing=completed - run.gaps.requests, per_s=NS_PER_S)
    itl = distribution(one_token, missing=completed - run.gaps.one_token_requests, per_s=NS_PER_S)
    if speculation is not None:
        # Its gaps are those of steps; the requests in which no draft was accepted are no fair sample of them.
        itl = distribution(one_token[:0], missing=completed)

    summary = Summary(
        run_id=manifest.run_id,
        name=manifest.name,
        labels=manifest.labels,
        started_at=manifest.started_at,
        duration_s=None if not len(edges_ns) else float(edges_ns[-1] - 1 - edges_ns[0]) / NS_PER_S,
        interrupted=manifest.interrupted is not False or missing_records > 0,
        target=manifest.target,
        load=manifest.load,
        requests=counts,
        tokens=run.tokens.result(),
        throughput=sections.throughput(),
        rate=sections.rates(),
        concurrency=sections.concurrency(),
        latency=sections.latency(icl, itl),
        latency_error_adjusted=sections.error_adjusted(),
        slo=sections.slo(),
        speculation=speculation,
        server=server_of(
            manifest,
            read,
            window=window,
            in_flight_ns=sections.in_flight_ns(),
            output_tokens=sections.output_tokens(),
        ),
        client=sections.client(run.oddities, coalesced=_share_of_zeros(gaps)),
        window=sections.window_facts(),
        steady_state=sections.steady_state(),
        warmup_requests=int(np.count_nonzero(~table.measured)),
        time_series=time_series(table, edges_ns, in_flight, arrivals.per_bin),
        server_series=server_series(read, edges_ns.astype(np.int64).tolist()) if read and len(edges_ns) > 1 else None,
        estimator=ESTIMATOR,
        verdict=Verdict(valid=True),
    )
    failures = run.failures.samples()
    facts = replace(sections.facts(summary, run, failures, missing_records), refused=refused_readings(pages))
    curves = {name: curve(table.ascending(name, sections.completed)) for name in _CURVES}
    curves["icl_s"] = curve(gaps, per_s=NS_PER_S)
    drawn = {name: points for name, points in curves.items() if points is not None}
    return Analysis(summary=replace(summary, verdict=judge(facts)), curves=drawn, failures=failures)


def _share_of_zeros(ascending: NDArray[np.float32]) -> float | None:
    """Gaps are never negative, so zeros come first."""
    return float(np.searchsorted(ascending, 0.0, side="right")) / len(ascending) if len(ascending) else None
