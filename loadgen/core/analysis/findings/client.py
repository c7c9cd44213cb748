"""Whether the client itself kept up: its sends, its CPU, its stamps."""

from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.finding import info, invalid, share, warning
from loadgen.core.analysis.findings.kinds import FindingKind
from loadgen.core.metrics.summary import Finding
from loadgen.core.units import duration_text

SENT_RATIO_MIN = 0.95
OWN_LAG_LIMIT_S = 0.05
OWN_LAG_TTFT_RATIO = 0.1
CPU_LIMIT_RATIO = 0.95
STAMP_LAG_LIMIT_S = 0.005
LOOP_STALL_LIMIT_S = 0.01
COALESCED_LIMIT_RATIO = 0.05
STALLED_LIMIT_RATIO = 0.01
CONNECTED_RATIO = 0.01


def sent_below_offered(facts: Facts) -> Finding | None:
    """Without a cap, the client itself started fewer requests than fell due."""
    if facts.manifest.load.max_concurrency is not None or not facts.due:
        return None
    if facts.due_and_sent >= SENT_RATIO_MIN * facts.due:
        return None
    return invalid(
        FindingKind.SENT_BELOW_OFFERED,
        f"{facts.due_and_sent} of {facts.due} requests due were sent in time"
        f" ({share(facts.due_and_sent, facts.due)}; at least {SENT_RATIO_MIN:.0%} is needed).",
        "The server saw less load than asked. Lower the rate, or give the load generator more CPU.",
    )


def client_lag(facts: Facts) -> Finding | None:
    """The client's own lateness, without waits for cap or session, is of the size of what is measured."""
    lag, ttft = facts.own_lag_p99_s, facts.summary.latency.ttft_s.p50
    limit = max(OWN_LAG_LIMIT_S, OWN_LAG_TTFT_RATIO * ttft if ttft is not None else 0.0)
    if lag is None or lag <= limit:
        return None
    return invalid(
        FindingKind.CLIENT_LAG,
        f"The client sent late by {duration_text(lag)} at p99; the limit is {duration_text(limit)}.",
        "The client was the bottleneck. Use a faster or less busy machine, or lower the rate.",
    )


def client_cpu(facts: Facts) -> Finding | None:
    """The client's CPU was used up and its stamps or its event loop fell behind."""
    client = facts.summary.client
    behind = client.stamp_lag_p99_s if client.stamp_lag_p99_s is not None else client.loop_stall_p99_s
    if client.cpu_ratio is None or client.cpu_ratio < CPU_LIMIT_RATIO:
        return None
    if behind is None or behind <= STAMP_LAG_LIMIT_S:
        return None
    return invalid(
        FindingKind.CLIENT_CPU,
        f"The client used {client.cpu_ratio:.0%} of its CPU and read {duration_text(behind)} late at p99.",
        "The client could not keep up. Lower the load, or use a machine with a free core for the load generator.",
    )


def worker_lost(facts: Facts) -> Finding | None:
    """Some of the processes that sent the load were gone before its end, and with them their share of it."""
    client = facts.manifest.client
    if client is None or not client.workers_lost:
        return None
    return invalid(
        FindingKind.WORKER_LOST,
        f"{client.workers_lost} of {client.workers} worker processes were gone before the end of the run.",
        "The load was less than asked from then on. See whether the system ran out of memory, and run it again.",
    )


def client_busy(facts: Facts) -> Finding | None:
    """The client had little to spare, without harm proven. Late reads alone do no harm: the kernel stamped in time."""
    client = facts.summary.client
    if client_cpu(facts) is not None:
        return None
    signs = []
    if client.cpu_ratio is not None and client.cpu_ratio >= CPU_LIMIT_RATIO:
        signs.append(f"CPU {client.cpu_ratio:.0%}")
    if client.loop_stall_p99_s is not None and client.loop_stall_p99_s > LOOP_STALL_LIMIT_S:
        signs.append(f"event loop late by {duration_text(client.loop_stall_p99_s)} at p99")
    if not signs:
        return None
    return warning(
        FindingKind.CLIENT_BUSY,
        f"The client was near its limit: {' and '.join(signs)}.",
        "Tails may hold the client's own delay. Repeat with less load or on a free core and compare.",
    )


def coalesced(facts: Facts) -> Finding | None:
    """Events arrived in bunches, more than late reads of our own account for: gaps are those of a buffer."""
    ratio, stalled = facts.summary.client.coalesced_ratio, facts.summary.client.stalled_ratio
    if ratio is None or ratio - (stalled or 0.0) <= COALESCED_LIMIT_RATIO:
        return None
    return warning(
        FindingKind.COALESCED,
        f"{ratio:.1%} of events arrived together with the event before them.",
        "Something between model and client collects events (a proxy, the server's stream interval). TPOT and"
        " end-to-end latency hold; inter-chunk latency and perhaps TTFT describe the buffer.",
    )


def stalled_stamps(facts: Facts) -> Finding | None:
    """The client read so late that events share a later segment's stamp."""
    ratio = facts.summary.client.stalled_ratio
    if ratio is None or ratio <= STALLED_LIMIT_RATIO:
        return None
    return warning(
        FindingKind.STALLED_STAMPS,
        f"{ratio:.1%} of events carry the stamp of a later segment, because the client read too late.",
        "Gaps between these events are not the server's. Give the load generator a free core.",
    )


def connections_opened(facts: Facts) -> Finding | None:
    """Requests waited for a connection to open, which their latency holds."""
    count, completed = facts.oddities.connected, facts.summary.requests.completed
    if not completed or count <= CONNECTED_RATIO * completed:
        return None
    return info(
        FindingKind.CONNECTIONS_OPENED,
        f"{count} of {completed} requests opened a connection first.",
        "Their TTFT includes it. The server may close idle connections early or not keep them alive.",
    )
