"""The sections of a summary from a run's columns."""

from dataclasses import dataclass

import numpy as np

from loadgen.core.analysis.arrivals import Arrivals
from loadgen.core.analysis.columns import Floats, Mask, Table
from loadgen.core.analysis.findings.client import OWN_LAG_LIMIT_S
from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.tallies import Oddities, Tallies
from loadgen.core.analysis.window import due_of, sending_end_ns
from loadgen.core.errors import InternalError
from loadgen.core.metrics.distribution import distribution, error_adjusted
from loadgen.core.metrics.summary import (
    Client,
    Concurrency,
    Distribution,
    FailureSample,
    Latency,
    Rates,
    RequestCounts,
    Slo,
    SteadyState,
    Summary,
    Throughput,
    WindowFacts,
)
from loadgen.core.record import Outcome
from loadgen.core.run import LoadMode, RunManifest, Window
from loadgen.core.stats.drift import Drift, drift
from loadgen.core.stats.intervals import InFlight
from loadgen.core.stats.quantiles import PERCENTILES, quantile
from loadgen.core.stats.steady import plateau
from loadgen.core.units import NS_PER_S

STEADY_BINS = 50
"""The window is cut into this many bins to look for the plateau of concurrency."""

EARLY_REQUESTS = 20
STEADY_MIN_COMPLETIONS = 10
"""A plateau with fewer completions is not reported."""

_COMPLETED_METRICS = ("ttft_s", "ttft_from_due_s", "ttfo_s", "tpot_s", "e2el_s", "e2el_from_due_s")
_SENT_METRICS = ("schedule_lag_s", "cap_wait_s")
_ERROR_ADJUSTED = ("ttft_s", "ttft_from_due_s", "tpot_s", "e2el_s", "e2el_from_due_s")
_DRIFT_METRICS = ("ttft_s", "tpot_s")
_P99 = PERCENTILES["p99"][0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The sections of a summary, each from the columns, and the facts that the verdict rests on."""

    manifest: RunManifest
    table: Table
    window: Window | None
    plateau: Window | None
    in_flight: InFlight
    arrivals: Arrivals

    @property
    def completed(self) -> Mask:
        """Measured requests that completed."""
        return self.table.measured & self.table.has(Outcome.COMPLETED)

    @property
    def sent(self) -> Mask:
        """Measured requests that were sent."""
        return self.table.measured & ~np.isnan(self.table["sent_ns"])

    def counts(self, run: Tallies) -> tuple[RequestCounts, int]:
        """The counts, and how many planned requests have no record: the rest of a killed or interrupted run."""
        table = self.table
        seqs = table["seq"][table.measured]
        if len(np.unique(seqs)) != len(seqs):
            raise InternalError(f"{len(seqs) - len(np.unique(seqs))} measured requests have a second record")
        by_outcome = {outcome: _count(table.measured & table.has(outcome)) for outcome in Outcome}
        planned = len(table) if self.manifest.planned is None else self.manifest.planned
        missing = planned - len(table)
        if missing < 0:
            raise InternalError(f"{len(table)} requests have a record, but only {planned} were planned")
        counts = RequestCounts(
            planned=len(seqs) + missing,
            sent=_count(self.sent),
            completed=by_outcome[Outcome.COMPLETED],
            failed=by_outcome[Outcome.FAILED],
            cancelled=by_outcome[Outcome.CANCELLED] + missing,
            dropped=by_outcome[Outcome.DROPPED],
            resent=run.resent,
            failed_by_kind=run.failures.by_kind(),
        )
        if sum(counts.failed_by_kind.values()) != counts.failed:
            raise InternalError(f"{counts.failed} failed requests, but {counts.failed_by_kind} failures by kind")
        return counts, missing

    def latency(self, icl: Distribution, itl: Distribution) -> Latency:
        """The distributions, in seconds: lag and wait of sent requests, the others of completed ones."""
        completed, sent = self.completed, self.sent
        of_completed = {name: self._distribution(name, completed) for name in _COMPLETED_METRICS}
        of_sent = {name: self._distribution(name, sent) for name in _SENT_METRICS}
        return Latency(icl_s=icl, itl_s=itl, **of_completed, **of_sent)

    def _distribution(self, name: str, population: Mask) -> Distribution:
        values = self.table.ascending(name, population)
        return distribution(values, missing=_count(population) - len(values))

    def error_adjusted(self) -> dict[str, Distribution]:
        """Latencies in seconds where a failed or dropped request counts as one that never ended."""
        lost = self.table.measured & (self.table.has(Outcome.FAILED) | self.table.has(Outcome.DROPPED))
        with_due = lost & ~np.isnan(self.table["due_ns"])
        adjusted = {}
        for name in _ERROR_ADJUSTED:
            values = self.table.ascending(name, self.completed)
            errors = _count(with_due if name.endswith("_from_due_s") else lost)
            adjusted[name] = error_adjusted(values, errors=errors, missing=_count(self.completed) - len(values))
        return adjusted

    def throughput(self) -> Throughput:
        """What came and went in the window over its length; all None without a window of some length."""
        window, table = self.window, self.table
        if window is None or window.end_ns <= window.start_ns:
            return Throughput(requests_per_s=None, output_tokens_per_s=None, input_tokens_per_s=None, goodput_rps=None)
        length_s = _length_s(window)
        closed_inside = _inside(table["closed_ns"], window.start_ns, window.end_ns)
        good = _count(table.measured & table.good & closed_inside)
        sent_inside = _inside(table["sent_ns"], window.start_ns, window.end_ns)
        input_tokens = table["input_tokens"][sent_inside]
        input_tokens = input_tokens[~np.isnan(input_tokens)]
        return Throughput(
            requests_per_s=_count(table.has(Outcome.COMPLETED) & closed_inside) / length_s,
            output_tokens_per_s=self.arrivals.per_span[0] / length_s if self.arrivals.known else None,
            input_tokens_per_s=float(input_tokens.sum()) / length_s if len(input_tokens) else None,
            goodput_rps=good / length_s if self.manifest.slo else None,
        )

    def output_tokens(self) -> float | None:
        """Output tokens that arrived in the window; None when they are not known, or there is no window."""
        return float(self.arrivals.per_span[0]) if self.window is not None and self.arrivals.known else None

    def _sending(self) -> tuple[int, int] | None:
        """The part of the window in which requests were started; None when it has no length."""
        if self.window is None:
            return None
        start_ns, end_ns = self.window.start_ns, sending_end_ns(self.table, self.window)
        return (start_ns, end_ns) if end_ns > start_ns else None

    def rates(self) -> Rates:
        """Offered and sent requests a second while requests were started; None offered where none had a due time."""
        span = self._sending()
        if span is None:
            return Rates(offered_rps=None, sent_rps=None)
        length_s = (span[1] - span[0]) / NS_PER_S
        measured, due = self.table.measured, self.table["due_ns"]
        has_due = bool(np.any(~np.isnan(due[measured])))
        return Rates(
            offered_rps=_count(measured & _inside(due, *span)) / length_s if has_due else None,
            sent_rps=_count(measured & _inside(self.table["sent_ns"], *span)) / length_s,
        )

    def _due_and_sent(self) -> tuple[int, int]:
        """Requests due in the sending part of the window, and those that the client itself started in time.

        A wait for the cap or for the session's previous turn is not the client's: such a request counts as sent if it
        would have left in time without that wait, or was dropped while waiting. In time is within the span, or as
        promptly as an arrival that falls at its very end allows.
        """
        span = self._sending()
        if span is None:
            return 0, 0
        table = self.table
        due = table.measured & _inside(table["due_ns"], *span)
        wait_ns = np.nan_to_num(table["cap_wait_ns"])
        ready = table["sent_ns"] - wait_ns
        waited_in_vain = np.isnan(table["sent_ns"]) & ((wait_ns > 0) | table.later_turn)
        prompt = ready - table["due_ns"] <= OWN_LAG_LIMIT_S * NS_PER_S
        return _count(due), _count(due & ((ready < span[1]) | prompt | waited_in_vain))

    def window_facts(self) -> WindowFacts | None:
        """The window in seconds of the run's axis."""
        window = self.window
        if window is None:
            return None
        return WindowFacts(start_s=window.start_ns / NS_PER_S, end_s=window.end_ns / NS_PER_S, kind=window.kind)

    def in_flight_ns(self) -> tuple[float, float] | None:
        """When the first request of any phase was sent and the last one ended; None when none was sent."""
        everyone = np.ones(len(self.table), dtype=np.bool_)
        sent, closed = self.table.ascending("sent_ns", everyone), self.table.ascending("closed_ns", everyone)
        return (float(sent[0]), float(closed[-1])) if len(sent) and len(closed) else None

    def concurrency(self) -> Concurrency:
        """Requests in flight in the window, of any phase."""
        window = self.window
        if window is None:
            return Concurrency(peak=0, mean=None)
        return Concurrency(
            peak=self.in_flight.peak(window.start_ns, window.end_ns),
            mean=self.in_flight.mean(window.start_ns, window.end_ns),
        )

    def slo(self) -> Slo | None:
        """Attainment over measured requests that fell due in the window, its last instant included; the dropped too."""
        if not self.manifest.slo:
            return None
        due = due_of(self.table, self.window)
        good, all_due = _count(due & self.table.good), _count(due)
        ratio = good / all_due if all_due else None
        return Slo(objectives=dict(self.manifest.slo), attainment_ratio=ratio, good=good, due=all_due)

    def client(self, oddities: Oddities, *, coalesced: float | None) -> Client:
        """What this machine had to do with the measurement; `coalesced` is the share of gaps that are zero."""
        client = self.manifest.client
        lags = self.table.ascending("stamp_lag_s", self.sent)
        return Client(
            timing_source="unknown" if client is None else client.timing_source.value,
            workers=1 if client is None else client.workers,
            cpu_ratio=None if client is None else client.cpu_ratio,
            stamp_lag_p99_s=quantile(lags, _P99) if len(lags) else None,
            coalesced_ratio=coalesced,
            stalled_ratio=oddities.stalled_events / oddities.events if oddities.events else None,
            loop_stall_p99_s=None if client is None else client.loop_stall_p99_s,
        )

    def steady_state(self) -> SteadyState | None:
        """The plateau's own figures; None without one, or with fewer than STEADY_MIN_COMPLETIONS in it."""
        span = self.plateau
        if span is None:
            return None
        inside = _inside(self.table["closed_ns"], span.start_ns, span.end_ns)
        completions = _count(self.table.has(Outcome.COMPLETED) & inside)
        if completions < STEADY_MIN_COMPLETIONS:
            return None
        length_s = _length_s(span)
        return SteadyState(
            start_s=span.start_ns / NS_PER_S,
            end_s=span.end_ns / NS_PER_S,
            requests_per_s=completions / length_s,
            output_tokens_per_s=self.arrivals.per_span[1] / length_s if self.arrivals.known else None,
            concurrency_mean=self.in_flight.mean(span.start_ns, span.end_ns),
        )

    def facts(self, summary: Summary, run: Tallies, failures: tuple[FailureSample, ...], missing_records: int) -> Facts:
        """What the verdict is made of."""
        table, window = self.table, self.window
        inside = np.zeros(len(table), dtype=np.bool_)
        if window is not None:
            inside = table.has(Outcome.COMPLETED) & _inside(table["closed_ns"], window.start_ns, window.end_ns)
        in_flight_ns = (table["closed_ns"] - table["sent_ns"])[inside]
        lags = table.ascending("own_lag_s", table.measured)
        due, due_and_sent = self._due_and_sent()
        return Facts(
            summary=summary,
            manifest=self.manifest,
            oddities=run.oddities,
            failures=failures,
            drifts=self._drifts(),
            missing_records=missing_records,
            due=due,
            due_and_sent=due_and_sent,
            completed_in_window=_count(inside),
            own_lag_p99_s=quantile(lags, _P99) if len(lags) else None,
            residence_s=float(in_flight_ns.mean()) / NS_PER_S if len(in_flight_ns) else None,
            early_e2el_s=self._e2el_s(slice(EARLY_REQUESTS)),
            late_e2el_s=self._e2el_s(slice(-EARLY_REQUESTS, None)),
            growth_ratio=self._growth_ratio(),
            tokens_generated=run.generated if run.uncounted == 0 else None,
            tokens_completed=run.completed_tokens,
            tokens_prompted=run.prompted if run.unprompted == 0 else None,
        )

    def _e2el_s(self, part: slice) -> float | None:
        """Median latency of a part of the completed requests, in the order of sending; None when it is empty."""
        order = np.argsort(self.table["sent_ns"], kind="stable")
        values = self.table["e2el_s"][order[self.completed[order]]][part]
        values = values[~np.isnan(values)]
        return float(np.median(values)) if len(values) else None

    def _growth_ratio(self) -> float | None:
        """Mean concurrency of the window's last third over that of its first; None without a window or a first."""
        if self.window is None:
            return None
        edges = np.linspace(self.window.start_ns, self.window.end_ns, 4)
        first, _, last = self.in_flight.means(edges).tolist()
        return last / first if first else None

    def _drifts(self) -> dict[str, Drift]:
        """Drift of each metric over completed requests in the order of sending; a fixed seed, so it is found again."""
        rng = np.random.default_rng(0)
        order = np.argsort(self.table["sent_ns"], kind="stable")
        order = order[self.completed[order]]
        found = {}
        for name in _DRIFT_METRICS:
            values = self.table[name][order]
            result = drift(values[values > 0], rng)
            if result is not None:
                found[name] = result
        return found


def plateau_of(table: Table, window: Window, in_flight: InFlight, manifest: RunManifest) -> Window | None:
    """The part of the window in which concurrency stayed on its plateau."""
    if window.end_ns <= window.start_ns:
        return None
    edges = np.linspace(window.start_ns, window.end_ns, STEADY_BINS + 1)
    closed_loop = manifest.load.mode is LoadMode.CONCURRENCY
    span = plateau(in_flight.means(edges), closed_loop=closed_loop)
    if span is None:
        return None
    return Window(start_ns=int(edges[span[0]]), end_ns=int(edges[span[1]]), kind="plateau")


def _inside(instants_ns: Floats, start_ns: float, end_ns: float) -> Mask:
    inside: Mask = (instants_ns >= start_ns) & (instants_ns < end_ns)
    return inside


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _length_s(window: Window) -> float:
    return (window.end_ns - window.start_ns) / NS_PER_S
