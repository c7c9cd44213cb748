"""Whether a measurement may be believed: one small rule a doubt, each with its evidence and what to do about it.

`docs/metrics.md` lists every kind with its threshold.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from loadgen.core.analysis.tallies import Oddities
from loadgen.core.metrics.summary import Comparison, FailureSample, Finding, Summary, Verdict
from loadgen.core.record import FailureKind
from loadgen.core.run import LoadMode, RunManifest
from loadgen.core.server.foreign import TOLERANCE_RATIO, ForeignTraffic, foreign
from loadgen.core.server.sample import Counters
from loadgen.core.stats.drift import Drift
from loadgen.core.stats.quantiles import PERCENTILES
from loadgen.core.units import duration_text

SENT_RATIO_MIN = 0.95
OWN_LAG_LIMIT_S = 0.05
OWN_LAG_TTFT_RATIO = 0.1
CPU_LIMIT_RATIO = 0.95
STAMP_LAG_LIMIT_S = 0.005
LOOP_STALL_LIMIT_S = 0.01
CAP_WAIT_RATIO = 0.1
COALESCED_LIMIT_RATIO = 0.05
STALLED_LIMIT_RATIO = 0.01
COUNTS_DIFFER_RATIO = 0.02
DECODE_UNTIMED_RATIO = 0.05
LENGTH_DIFFERS_RATIO = 0.1
FIRST_SEVERAL_RATIO = 0.01
CONNECTED_RATIO = 0.01
ACCEPTANCE_DIFFERS_RATIO = 0.01
STREAM_DIFFERS_RATIO = 0.05
CACHED_LIMIT_RATIO = 0.1
PREEMPTED_LIMIT_RATIO = 0.01
SHORT_WINDOW_RATIO = 2.0
LITTLE_LIMIT_RATIO = 0.2
LITTLE_MIN_TURNOVERS = 5.0
OVERLOAD_COMPLETED_RATIO = 0.8
OVERLOAD_GROWTH_RATIO = 2.5
OVERLOAD_LATENCY_RATIO = 1.5
OVERLOAD_MIN_TURNOVERS = 5.0


class FindingKind(StrEnum):
    """What a finding is about. A closed set."""

    SENT_BELOW_OFFERED = "sent_below_offered"
    CLIENT_LAG = "client_lag"
    CLIENT_CPU = "client_cpu"
    NO_COMPLETION = "no_completion"
    INTERRUPTED = "interrupted"
    GIVEN_UP = "given_up"
    FAILURES = "failures"
    SAME_ERROR = "same_error"
    ARRIVALS_DROPPED = "arrivals_dropped"
    CAP_LIMITED = "cap_limited"
    CLIENT_BUSY = "client_busy"
    COALESCED = "coalesced"
    STALLED_STAMPS = "stalled_stamps"
    NOT_STREAMED = "not_streamed"
    USAGE_MISSING = "usage_missing"
    TOKEN_COUNTS_DISAGREE = "token_counts_disagree"  # noqa: S105 - a count of tokens, not a credential
    REASONING_HIDDEN = "reasoning_hidden"
    DECODE_NOT_TIMED = "decode_not_timed"
    FIRST_EVENT_SEVERAL = "first_event_several"
    OUTPUT_LENGTH = "output_length"
    INPUT_LENGTH = "input_length"
    OBJECTIVE_WITHOUT_VALUE = "objective_without_value"
    WARMUP_DRIFT = "warmup_drift"
    OVERLOADED = "overloaded"
    NOT_STEADY = "not_steady"
    SHORT_WINDOW = "short_window"
    TOO_FEW_REQUESTS = "too_few_requests"
    SERVER_RESTARTED = "server_restarted"
    SCRAPE_FAILED = "scrape_failed"
    FOREIGN_TRAFFIC = "foreign_traffic"
    SERVER_PARTLY_READ = "server_partly_read"
    PREEMPTIONS = "preemptions"
    PREFIX_CACHE = "prefix_cache"
    LOSSY_VERIFIER = "lossy_verifier"
    FORCED_ACCEPTANCE = "forced_acceptance"
    INVENTED_TEXT = "invented_text"
    ACCEPTANCE_DISAGREES = "acceptance_disagrees"
    CONNECTIONS_OPENED = "connections_opened"


class Severity(StrEnum):
    """`invalid` says that the numbers do not describe the server; the others that they need care."""

    INVALID = "invalid"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the rules judge by.

    `due` counts requests that fell due in the part of the window in which requests are started, `due_and_sent` those of
    them that left within it or would have but for the cap or a previous turn. `residence_s` is the mean time in flight
    of the requests that completed in the window, `early_e2el_s` and `late_e2el_s` the median latency of the first and
    last ones sent,
    `growth_ratio` the mean concurrency of the window's last third over that of its first. `tokens_generated` counts
    output tokens of every phase and outcome, `tokens_prompted` input tokens; None when some request's are not known.
    `tokens_completed` are the output tokens of requests that completed, as far as they are known.
    """

    summary: Summary
    manifest: RunManifest
    oddities: Oddities
    failures: tuple[FailureSample, ...]
    drifts: Mapping[str, Drift]
    missing_records: int
    due: int
    due_and_sent: int
    completed_in_window: int
    own_lag_p99_s: float | None
    residence_s: float | None
    early_e2el_s: float | None
    late_e2el_s: float | None
    growth_ratio: float | None
    tokens_generated: int | None
    tokens_completed: int
    tokens_prompted: int | None

    @property
    def window_s(self) -> float:
        """Length of the window, 0 without one."""
        window = self.summary.window
        return 0.0 if window is None else window.end_s - window.start_s


def judge(facts: Facts) -> Verdict:
    """Every finding, the gravest first; valid when none of them is `invalid`."""
    findings = [finding for rule in RULES if (finding := rule(facts)) is not None]
    findings.sort(key=lambda finding: list(Severity).index(Severity(finding.severity)))
    return Verdict(valid=all(finding.severity != Severity.INVALID for finding in findings), findings=tuple(findings))


def _invalid(kind: FindingKind, evidence: str, advice: str) -> Finding:
    return Finding(kind=kind.value, severity=Severity.INVALID.value, evidence=evidence, advice=advice)


def _warning(kind: FindingKind, evidence: str, advice: str) -> Finding:
    return Finding(kind=kind.value, severity=Severity.WARNING.value, evidence=evidence, advice=advice)


def _info(kind: FindingKind, evidence: str, advice: str) -> Finding:
    return Finding(kind=kind.value, severity=Severity.INFO.value, evidence=evidence, advice=advice)


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}"


def sent_below_offered(facts: Facts) -> Finding | None:
    """Without a cap, the client itself started fewer requests than fell due."""
    if facts.manifest.load.max_concurrency is not None or not facts.due:
        return None
    if facts.due_and_sent >= SENT_RATIO_MIN * facts.due:
        return None
    return _invalid(
        FindingKind.SENT_BELOW_OFFERED,
        f"{facts.due_and_sent} of {facts.due} requests due were sent in time"
        f" ({_share(facts.due_and_sent, facts.due)}; at least {SENT_RATIO_MIN:.0%} is needed).",
        "The server saw less load than asked. Lower the rate, or give the load generator more CPU.",
    )


def client_lag(facts: Facts) -> Finding | None:
    """The client's own lateness, without waits for cap or session, is of the size of what is measured."""
    lag, ttft = facts.own_lag_p99_s, facts.summary.latency.ttft_s.p50
    limit = max(OWN_LAG_LIMIT_S, OWN_LAG_TTFT_RATIO * ttft if ttft is not None else 0.0)
    if lag is None or lag <= limit:
        return None
    return _invalid(
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
    return _invalid(
        FindingKind.CLIENT_CPU,
        f"The client used {client.cpu_ratio:.0%} of its CPU and read {duration_text(behind)} late at p99.",
        "The client could not keep up. Lower the load, or use a machine with a free core for the load generator.",
    )


def no_completion(facts: Facts) -> Finding | None:
    """Nothing completed in the window."""
    if facts.completed_in_window:
        return None
    counts = facts.summary.requests
    return _invalid(
        FindingKind.NO_COMPLETION,
        f"No request completed in the measured window ({counts.completed} completed at all, {counts.failed} failed).",
        "There is nothing to report. See the failures, or measure for longer than one answer takes.",
    )


def interrupted(facts: Facts) -> Finding | None:
    """The run did not end as planned."""
    if not facts.summary.interrupted:
        return None
    lost = f"; {facts.missing_records} planned requests have no record" if facts.missing_records else ""
    reason = facts.manifest.ended_by
    return _warning(
        FindingKind.INTERRUPTED,
        f"The run {'ended by ' + reason if reason is not None else 'was killed before its end'}{lost}.",
        "The numbers cover what was recorded up to then; requests without a record count as cancelled.",
    )


_GAVE_UP = {
    "refused": (
        "the server refused every request from the first one on",
        "See the failures below: key, model, endpoint or request body is wrong.",
    ),
    "unreachable": (
        "the server could not be reached any more",
        "See whether it crashed or was restarted. The numbers describe it up to then.",
    ),
}


def given_up(facts: Facts) -> Finding | None:
    """The load generator ended the run early, since the rest would have failed as well."""
    said = _GAVE_UP.get(facts.manifest.ended_by or "")
    if said is None:
        return None
    reason, advice = said
    asked = facts.manifest.load.num_requests
    of = "" if asked is None else f" of {asked}"
    return _warning(
        FindingKind.GIVEN_UP,
        f"The run was given up after {facts.summary.requests.sent}{of} requests: {reason}.",
        advice,
    )


def failures(facts: Facts) -> Finding | None:
    """Some requests failed, and percentiles cover only the others."""
    counts = facts.summary.requests
    if not counts.failed:
        return None
    ended = counts.completed + counts.failed
    kinds = ", ".join(f"{kind} {count}" for kind, count in counts.failed_by_kind.items())
    return _warning(
        FindingKind.FAILURES,
        f"{counts.failed} of {ended} requests failed ({_share(counts.failed, ended)}): {kinds}.",
        "Latencies cover only requests that completed; read them beside the error-adjusted percentiles.",
    )


def same_error(facts: Facts) -> Finding | None:
    """Every failure is the same refusal of the request, which no load explains."""
    if len(facts.failures) != 1 or facts.failures[0].kind != FailureKind.HTTP_4XX.value:
        return None
    sample = facts.failures[0]
    said = f": {sample.example}" if sample.example else ""
    return _warning(
        FindingKind.SAME_ERROR,
        f"Every failure is HTTP {sample.http_status}{said}",
        "The server refuses the request itself. Check key, model, endpoint and request body.",
    )


def arrivals_dropped(facts: Facts) -> Finding | None:
    """Requests fell due and were never sent."""
    dropped = facts.summary.requests.dropped
    if not dropped:
        return None
    return _warning(
        FindingKind.ARRIVALS_DROPPED,
        f"{dropped} of {facts.summary.requests.planned} requests were due and never sent.",
        "They count against the objectives. When the run ended they waited for a slot or a previous turn, or the client"
        " had not come to them.",
    )


def cap_limited(facts: Facts) -> Finding | None:
    """An open loop spent much time waiting for its own cap: it was a closed loop in disguise."""
    cap, wait = facts.manifest.load.max_concurrency, facts.summary.latency.cap_wait_s.mean
    latency = facts.summary.latency.e2el_s.mean
    if cap is None or wait is None or latency is None or wait <= CAP_WAIT_RATIO * latency:
        return None
    offered = facts.summary.rate.offered_rps
    needed = f"; {offered:.3g} requests/s of {latency:.3g} s need about {offered * latency:.0f}" if offered else ""
    return _warning(
        FindingKind.CAP_LIMITED,
        f"Requests waited {duration_text(wait)} on average for one of {cap} slots{needed}.",
        "Latency from sent hides this wait, latency from due holds it. Raise --max-concurrency above rate x latency,"
        " or read the run as a closed loop.",
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
    return _warning(
        FindingKind.CLIENT_BUSY,
        f"The client was near its limit: {' and '.join(signs)}.",
        "Tails may hold the client's own delay. Repeat with less load or on a free core and compare.",
    )


def coalesced(facts: Facts) -> Finding | None:
    """Events arrived in bunches, more than late reads of our own account for: gaps are those of a buffer."""
    ratio, stalled = facts.summary.client.coalesced_ratio, facts.summary.client.stalled_ratio
    if ratio is None or ratio - (stalled or 0.0) <= COALESCED_LIMIT_RATIO:
        return None
    return _warning(
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
    return _warning(
        FindingKind.STALLED_STAMPS,
        f"{ratio:.1%} of events carry the stamp of a later segment, because the client read too late.",
        "Gaps between these events are not the server's. Give the load generator a free core.",
    )


def not_streamed(facts: Facts) -> Finding | None:
    """A stream was asked for and whole bodies came."""
    count = facts.oddities.not_streamed
    if not count or facts.manifest.options.get("stream") is False:
        return None
    return _warning(
        FindingKind.NOT_STREAMED,
        f"{count} of {facts.summary.requests.completed} replies were not streamed although a stream was asked for.",
        "They have an end-to-end latency only. Check that server and proxy support streaming on this endpoint.",
    )


def usage_missing(facts: Facts) -> Finding | None:
    """Some completed requests have no token count by the server."""
    count = facts.summary.tokens.requests_without_server_count
    if not count:
        return None
    return _warning(
        FindingKind.USAGE_MISSING,
        f"{count} of {facts.summary.requests.completed} completed requests have no output token count by the server.",
        "Those without any count have no TPOT and add nothing to token rates. Let the server send usage"
        " (stream_options.include_usage).",
    )


def token_counts_disagree(facts: Facts) -> Finding | None:
    """The server's count of the answers differs from the tokens that came in their events."""
    counted, difference = facts.oddities.counted_by_server, facts.oddities.server_stream_difference
    if not counted or difference <= COUNTS_DIFFER_RATIO * counted:
        return None
    return _warning(
        FindingKind.TOKEN_COUNTS_DISAGREE,
        f"The server's usage and the tokens in the streams differ by {difference} of {counted} tokens"
        f" ({_share(difference, counted)}).",
        "TPOT uses the server's count. Find out which is wrong before comparing token rates.",
    )


def reasoning_hidden(facts: Facts) -> Finding | None:
    """Reasoning was counted and not streamed."""
    count = facts.oddities.reasoning_hidden
    if not count:
        return None
    return _warning(
        FindingKind.REASONING_HIDDEN,
        f"{count} of {facts.summary.requests.completed} answers had reasoning tokens that were not streamed.",
        "TTFT includes the hidden reasoning; TPOT and token rates leave its tokens out.",
    )


def decode_not_timed(facts: Facts) -> Finding | None:
    """The decode time of too many answers of several tokens cannot be told."""
    count = facts.oddities.decode_untimed
    several = facts.oddities.timed + count
    if not count or count <= DECODE_UNTIMED_RATIO * several:
        return None
    return _warning(
        FindingKind.DECODE_NOT_TIMED,
        f"{count} of {several} answers of two tokens or more arrived at once or mostly in their first event.",
        "They have no TPOT and keep their other metrics. A buffer, or a parser that holds text back, is likely.",
    )


def first_event_several(facts: Facts) -> Finding | None:
    """First events held several tokens, so that N - 1 overstates what came after them."""
    oddities = facts.oddities
    if not oddities.timed or oddities.first_event_several <= FIRST_SEVERAL_RATIO * oddities.timed:
        return None
    return _info(
        FindingKind.FIRST_EVENT_SEVERAL,
        f"In {oddities.first_event_several} of {oddities.timed} answers the first event held several tokens;"
        f" TPOT, which divides by N - 1, is too low by {_share(oddities.overstated_sum, oddities.timed)} on average.",
        "Compare only runs that deliver their first event alike.",
    )


def output_length(facts: Facts) -> Finding | None:
    """Answers are not as long as the data asked for."""
    return _length(
        FindingKind.OUTPUT_LENGTH,
        "output",
        facts.oddities.planned_output,
        facts.oddities.actual_output,
        "All numbers use actual lengths. For equal work force the length (--ignore-eos), if the model bears it.",
    )


def input_length(facts: Facts) -> Finding | None:
    """Prompts are not as long as the data asked for."""
    return _length(
        FindingKind.INPUT_LENGTH,
        "input",
        facts.oddities.planned_input,
        facts.oddities.actual_input,
        f"All numbers use the server's count, which includes its chat template. {_input_advice(facts.manifest)}",
    )


def _input_advice(manifest: RunManifest) -> str:
    """What can be done about prompts of another length: only invented ones can be made to measure."""
    match manifest.data.get("text"):
        case "borrowed":
            return (
                "Prompts were chosen by estimated length; more of them (--prompts) come closer to what was asked for."
            )
        case "invented" if not manifest.options.get("token_ids"):
            return "Where the server takes token ids, --token-ids sends exact lengths."
        case "invented":
            return "It counted other tokens than were sent."
        case _:
            return "The data's count is that of another model's tokens."


def _length(kind: FindingKind, what: str, planned: int, actual: int, advice: str) -> Finding | None:
    if not planned or abs(actual - planned) <= LENGTH_DIFFERS_RATIO * planned:
        return None
    return _info(kind, f"{actual} {what} tokens where {planned} were asked for ({actual / planned:.2f} x).", advice)


def objective_without_value(facts: Facts) -> Finding | None:
    """Completed requests count as not good because an objective's metric has no value for them."""
    latency = facts.summary.latency
    missing = {
        metric: count
        for metric in facts.manifest.slo
        if (count := getattr(latency, metric).missing) and facts.summary.requests.completed
    }
    if not missing:
        return None
    listed = ", ".join(f"{metric}: {count}" for metric, count in missing.items())
    return _warning(
        FindingKind.OBJECTIVE_WITHOUT_VALUE,
        f"Completed requests without a value for an objective, hence not good: {listed}.",
        "One-token answers have no TPOT, a closed loop no latency from due. Choose objectives that every request has.",
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
    return _warning(
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
    return _warning(
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
    return _warning(
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
    return _warning(
        FindingKind.SHORT_WINDOW,
        f"The window is {duration_text(facts.window_s)}, a request takes {duration_text(latency)}.",
        "Rates over so short a window depend on where it was cut. Measure longer.",
    )


def too_few_requests(facts: Facts) -> Finding | None:
    """The sample does not carry a p99."""
    completed, needed = facts.summary.requests.completed, PERCENTILES["p99"][1]
    if completed >= needed:
        return None
    return _info(
        FindingKind.TOO_FEW_REQUESTS,
        f"{completed} completed requests; a p99 needs {needed}.",
        "Percentiles that the sample does not carry are left out. Send more requests.",
    )


def server_restarted(facts: Facts) -> Finding | None:
    """A counter fell: a process of the server was started anew while requests were sent."""
    resets = facts.summary.server.resets
    if not resets:
        return None
    more = f", and {len(resets) - 1} more" if len(resets) > 1 else ""
    return _warning(
        FindingKind.SERVER_RESTARTED,
        f"The server was started anew during the run: {resets[0]}{more}.",
        "Its counters tell nothing of this run, and requests met a server that was down or cold. Find out why, and"
        " measure again.",
    )


def scrape_failed(facts: Facts) -> Finding | None:
    """A metrics page could not be read; in the middle of the run that loses little."""
    server = facts.summary.server
    if not server.failed_scrapes and (server.scraped or not server.scrapes):
        return None
    if server.scraped:
        return _info(
            FindingKind.SCRAPE_FAILED,
            f"{server.failed_scrapes} of {server.scrapes} readings of the server's pages failed:"
            f" {server.failed_example}.",
            "Counters are whole, since they were read before and after; the server's state over time has gaps.",
        )
    reason = server.failed_example or "; ".join(server.notes)
    return _warning(
        FindingKind.SCRAPE_FAILED,
        f"The server's counters do not hold the whole run: {reason}.",
        "What rests on them is missing or of a part of the run. See that the page can be read (--metrics-url), or leave"
        " it alone (--no-scrape).",
    )


def foreign_traffic(facts: Facts) -> Finding | None:
    """The server did more than this client's work."""
    found = _beside_the_client(facts)
    if found is None or not found.exceeds:
        return None
    return _warning(
        FindingKind.FOREIGN_TRAFFIC,
        f"{_both_counts(facts)}: {found.reason}.",
        "Latencies and the server's figures hold that work too. Measure on a server of your own.",
    )


def server_partly_read(facts: Facts) -> Finding | None:
    """The pages that were read show less than this client got in answers that completed.

    Some engines count a request when it ends, and never what was given up.
    """
    found, theirs = _beside_the_client(facts), facts.summary.server.generation_tokens_delta
    if found is None or found.exceeds or theirs is None:
        return None
    if theirs >= (1 - TOLERANCE_RATIO) * facts.tokens_completed:
        return None
    return _warning(
        FindingKind.SERVER_PARTLY_READ,
        f"{_both_counts(facts)}: {found.reason}.",
        "The server's figures are of a part of it. Give the page of every replica (--metrics-url, several times).",
    )


def _beside_the_client(facts: Facts) -> ForeignTraffic | None:
    """The server's tokens over the run beside the client's; None unless the pages hold the whole run."""
    server = facts.summary.server
    if not server.scraped:
        return None
    counted = Counters(prompt_tokens=server.prompt_tokens_delta, generation_tokens=server.generation_tokens_delta)
    return foreign(
        counted,
        client_prompt_tokens=facts.tokens_prompted,
        client_generation_tokens=facts.tokens_generated,
    )


def _both_counts(facts: Facts) -> str:
    server = facts.summary.server
    counts = [
        f"{theirs:.0f} {what} tokens where this client has {ours}"
        for what, theirs, ours in (
            ("prompt", server.prompt_tokens_delta, facts.tokens_prompted),
            ("output", server.generation_tokens_delta, facts.tokens_generated),
        )
        if theirs is not None and ours is not None
    ]
    return f"The server counted {' and '.join(counts)}"


def preemptions(facts: Facts) -> Finding | None:
    """The server took requests out of its batch to make room, and computed them again."""
    count, completed = facts.summary.server.preemptions, facts.completed_in_window
    if not count:
        return None
    make = _warning if count > PREEMPTED_LIMIT_RATIO * completed else _info
    return make(
        FindingKind.PREEMPTIONS,
        f"The server preempted requests {count:.0f} times in the window, in which {completed} completed.",
        "Its KV cache is too small for this load, and work is done twice. Lower the load, or compare at one that fits.",
    )


def prefix_cache(facts: Facts) -> Finding | None:
    """A good part of the prompts came from the server's prefix cache."""
    cached, total = facts.oddities.cached_input, facts.oddities.input_beside_cached
    if not total or cached <= CACHED_LIMIT_RATIO * total:
        return None
    evidence = f"{cached} of {total} input tokens came from the server's prefix cache ({_share(cached, total)})."
    if facts.oddities.in_session:
        return _info(FindingKind.PREFIX_CACHE, evidence, "Conversations share their history, so this is expected.")
    return _warning(
        FindingKind.PREFIX_CACHE,
        evidence,
        "Prompts repeat each other or an earlier run's. Use another seed or reset the cache, unless reuse is meant.",
    )


def lossy_verifier(facts: Facts) -> Finding | None:
    """The server accepts drafts that the target model would not have drawn."""
    speculation = facts.summary.server.speculation
    if speculation is None or not speculation.lossy:
        return None
    return _warning(
        FindingKind.LOSSY_VERIFIER,
        f"The server verifies drafts loosely: {', '.join(speculation.lossy)}.",
        "Its answers are not those of the target model, and part of the speed is bought with that. Do not compare it"
        " with a baseline as if they were.",
    )


def forced_acceptance(facts: Facts) -> Finding | None:
    """Acceptance is made up, which measures costs and bounds."""
    speculation = facts.summary.server.speculation
    if speculation is None or not speculation.forced:
        return None
    length = speculation.forced_acceptance_length
    to = "" if length is None else f" to {length:g} tokens a step"
    return _info(
        FindingKind.FORCED_ACCEPTANCE,
        f"The server makes its acceptance up{to}.",
        "The text means nothing; the times are those of a drafter that would be accepted so.",
    )


def invented_text(facts: Facts) -> Finding | None:
    """Acceptance was measured on text that nobody wrote."""
    if facts.summary.speculation is None or facts.manifest.data.get("text") != "invented":
        return None
    return _warning(
        FindingKind.INVENTED_TEXT,
        "The prompts' text is invented, and acceptance depends on the text.",
        "Acceptance and any speed-up from it say nothing about real traffic. Use real prompts (--prompts).",
    )


def acceptance_disagrees(facts: Facts) -> Finding | None:
    """Two origins of acceptance differ by more than their definitions explain."""
    speculation = facts.summary.speculation
    agreement = () if speculation is None else speculation.agreement
    in_stream = [one for one in agreement if one.right == "stream" and one.quantity.endswith("steps")]
    streamed = max((one.right_value or 0.0 for one in in_stream), default=0.0)
    apart = [
        one
        for one in agreement
        if _beyond_allowed(one, streamed)
        > (STREAM_DIFFERS_RATIO if one.right == "stream" else ACCEPTANCE_DIFFERS_RATIO)
    ]
    if not apart:
        return None
    said = "; ".join(
        f"{one.quantity.replace('_', ' ')} are {one.left_value:.5g} by {_ORIGIN_WORDS[one.left]} and"
        f" {one.right_value:.5g} by {_ORIGIN_WORDS[one.right]}"
        for one in apart
    )
    if all(one.right == "stream" for one in apart):
        advice = (
            "Not every event is a step: a character of several tokens, a parser or a slow reader makes one event of"
            " several steps. Trust the server's own figures before those of the stream."
        )
    else:
        advice = (
            "The server counted steps of other requests than this client's, or lost some. Until that is found, quote no"
            " acceptance of this run."
        )
    return _warning(FindingKind.ACCEPTANCE_DISAGREES, f"More than the definitions explain: {said}.", advice)


_ORIGIN_WORDS = {
    "counters": "the server's counters",
    "per_request": "the answers' own accounts",
    "stream": "the events",
}


def _beyond_allowed(one: Comparison, streamed_steps: float) -> float:
    """By how much a difference leaves what is allowed, as a share of the larger value; 0 when nothing bounds it.

    Two steps in one event look like an accepted draft: in a stream such drafts are a share of its steps, since where
    next to nothing is accepted one merged event would be all of it.
    """
    if one.difference is None or one.allowed is None or one.left_value is None or one.right_value is None:
        return 0.0
    low, high = one.allowed
    beyond = max(low - one.difference, one.difference - high, 0.0)
    steps = streamed_steps if one.right == "stream" and one.quantity == "accepted_tokens" else 0.0
    return beyond / max(one.left_value, one.right_value, steps) if beyond else 0.0


def connections_opened(facts: Facts) -> Finding | None:
    """Requests waited for a connection to open, which their latency holds."""
    count, completed = facts.oddities.connected, facts.summary.requests.completed
    if not completed or count <= CONNECTED_RATIO * completed:
        return None
    return _info(
        FindingKind.CONNECTIONS_OPENED,
        f"{count} of {completed} requests opened a connection first.",
        "Their TTFT includes it. The server may close idle connections early or not keep them alive.",
    )


RULES: tuple[Callable[[Facts], Finding | None], ...] = (
    sent_below_offered,
    client_lag,
    client_cpu,
    no_completion,
    interrupted,
    given_up,
    failures,
    same_error,
    arrivals_dropped,
    cap_limited,
    client_busy,
    coalesced,
    stalled_stamps,
    not_streamed,
    usage_missing,
    token_counts_disagree,
    reasoning_hidden,
    decode_not_timed,
    first_event_several,
    output_length,
    input_length,
    objective_without_value,
    overloaded,
    warmup_drift,
    not_steady,
    short_window,
    too_few_requests,
    server_restarted,
    scrape_failed,
    foreign_traffic,
    server_partly_read,
    preemptions,
    prefix_cache,
    lossy_verifier,
    forced_acceptance,
    invented_text,
    acceptance_disagrees,
    connections_opened,
)
"""One function a kind, in the order in which findings of the same severity are shown."""
