"""Whether the window shows one steady state, and enough of it."""

from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.finding import info, warning
from loadgen.core.analysis.findings.kinds import FindingKind
from loadgen.core.metrics.summary import Finding
from loadgen.core.run import LoadMode
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.core.units import duration_text

CAP_WAIT_RATIO = 0.1
SHORT_WINDOW_RATIO = 2.0
LITTLE_LIMIT_RATIO = 0.2
LITTLE_MIN_TURNOVERS = 5.0
OVERLOAD_COMPLETED_RATIO = 0.8
OVERLOAD_GROWTH_RATIO = 2.5
OVERLOAD_LATENCY_RATIO = 1.5
OVERLOAD_MIN_TURNOVERS = 5.0


def cap_limited(facts: Facts) -> Finding | None:
    """An open loop spent much time waiting for its own cap: it was a closed loop in disguise."""
    cap, wait = facts.manifest.load.max_concurrency, facts.summary.latency.cap_wait_s.mean
    latency = facts.summary.latency.e2el_s.mean
    if cap is None or wait is None or latency is None or wait <= CAP_WAIT_RATIO * latency:
        return None
    offered = facts.summary.rate.offered_rps
    needed = f"; {offered:.3g} requests/s of {latency:.3g} s need about {offered * latency:.0f}" if offered else ""
    return warning(
        FindingKind.CAP_LIMITED,
        f"Requests waited {duration_text(wait)} on average for one of {cap} slots{needed}.",
        "Latency from sent hides this wait, latency from due holds it. Raise --max-concurrency above rate x latency,"
        " or read the run as a closed loop.",
    )


def overloaded(facts: Facts) -> Finding | None:
    """An open loop sends more than the server completes, and requests pile up for as long as it lasts."""
    sent, completed = facts.summary.rate.sent_rps, facts.summary.throughput.requests_per_s
    if facts.summary.load.mode is LoadMode.CONCURRENCY or facts.summary.load.max_concurrency is not None:
        return None
    if sent is None or completed is None or facts.growth_ratio is None or facts.early_e2el_s is None:
        return None
    if completed > OVERLOAD_COMPLETED_RATIO * sent or facts.growth_ratio < OVERLOAD_GROWTH_RATIO:
        return None
    if facts.window_s < OVERLOAD_MIN_TURNOVERS * facts.early_e2el_s:
        return None
    if facts.late_e2el_s is None or facts.late_e2el_s < OVERLOAD_LATENCY_RATIO * facts.early_e2el_s:
        return None  # more arrivals, answered as fast as before
    return warning(
        FindingKind.OVERLOADED,
        f"{sent:.3g} requests/s were sent and {completed:.3g} completed; {facts.growth_ratio:.1f} x as many were in"
        " flight in the window's last third as in its first.",
        "The server carries less than this load, and latencies grow with the length of the run: they describe the"
        " queue. Lower the rate, or cap it (--max-concurrency).",
    )


def warmup_drift(facts: Facts) -> Finding | None:
    """The first requests of the window differ from the rest, and not because requests pile up."""
    if overloaded(facts) is not None:
        return None
    parts = [
        f"{metric} median of the first {found.first_n} requests {found.ratio.value:.2f} x that of the rest"
        f" ({found.ratio.confidence_ratio:.0%} interval {found.ratio.low:.2f} to {found.ratio.high:.2f})"
        for metric, found in facts.drifts.items()
    ]
    if not parts:
        return None
    most = max(found.first_n for found in facts.drifts.values())
    slower = any(found.ratio.value > 1 for found in facts.drifts.values())
    return warning(
        FindingKind.WARMUP_DRIFT,
        "; ".join(parts) + ".",
        f"Warm up with at least {most} requests (--warmup-requests {most}) and measure again."
        if slower
        else "Latency rises over the window: the load is more than the server carries, or an empty server was filling"
        " up. Measure longer, warm up, or lower the load.",
    )


def not_steady(facts: Facts) -> Finding | None:
    """Concurrency, completion rate and time in flight do not fit together, as they must in a steady state (Little)."""
    mean, rate = facts.summary.concurrency.mean, facts.summary.throughput.requests_per_s
    if mean is None or rate is None or facts.residence_s is None or not facts.residence_s:
        return None
    if facts.window_s < LITTLE_MIN_TURNOVERS * facts.residence_s:
        return None
    implied = rate * facts.residence_s
    if abs(mean - implied) <= LITTLE_LIMIT_RATIO * mean:
        return None
    return warning(
        FindingKind.NOT_STEADY,
        f"Mean concurrency is {mean:.3g}, but {rate:.3g} requests/s of {facts.residence_s:.3g} s in flight make"
        f" {implied:.3g}.",
        "Rates and latencies describe different states. Requests pile up or drain in the window: lower the load or"
        " measure longer.",
    )


def short_window(facts: Facts) -> Finding | None:
    """The window is hardly longer than one request."""
    latency = facts.summary.latency.e2el_s.mean
    if latency is None or facts.summary.window is None or facts.window_s >= SHORT_WINDOW_RATIO * latency:
        return None
    return warning(
        FindingKind.SHORT_WINDOW,
        f"The window is {duration_text(facts.window_s)}, a request takes {duration_text(latency)}.",
        "Rates over so short a window depend on where it was cut. Measure longer.",
    )


def too_few_requests(facts: Facts) -> Finding | None:
    """The sample does not carry a p99."""
    completed, needed = facts.summary.requests.completed, PERCENTILES["p99"][1]
    if completed >= needed:
        return None
    return info(
        FindingKind.TOO_FEW_REQUESTS,
        f"{completed} completed requests; a p99 needs {needed}.",
        "Percentiles that the sample does not carry are left out. Send more requests.",
    )
