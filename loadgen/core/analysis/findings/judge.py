"""Every rule put to a run, and what follows for it: `docs/metrics.md` lists each kind with its threshold."""

from collections.abc import Callable

from loadgen.core.analysis.findings import answers, client, outcomes, server, speculation, steadiness
from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.kinds import Severity
from loadgen.core.metrics.summary import Finding, Verdict


def judge(facts: Facts) -> Verdict:
    """Every finding, the gravest first; valid when none of them is `invalid`."""
    findings = [finding for rule in RULES if (finding := rule(facts)) is not None]
    findings.sort(key=lambda finding: list(Severity).index(Severity(finding.severity)))
    return Verdict(valid=all(finding.severity != Severity.INVALID for finding in findings), findings=tuple(findings))


RULES: tuple[Callable[[Facts], Finding | None], ...] = (
    client.sent_below_offered,
    client.client_lag,
    client.client_cpu,
    client.worker_lost,
    outcomes.no_completion,
    outcomes.interrupted,
    outcomes.given_up,
    outcomes.failures,
    outcomes.same_error,
    outcomes.arrivals_dropped,
    steadiness.cap_limited,
    client.client_busy,
    client.coalesced,
    client.stalled_stamps,
    answers.not_streamed,
    answers.usage_missing,
    answers.token_counts_disagree,
    answers.reasoning_hidden,
    answers.decode_not_timed,
    answers.first_event_several,
    answers.output_length,
    answers.limit_exceeded,
    answers.ended_early,
    answers.input_length,
    answers.objective_without_value,
    steadiness.overloaded,
    steadiness.warmup_drift,
    steadiness.not_steady,
    steadiness.short_window,
    steadiness.too_few_requests,
    server.server_restarted,
    server.scrape_failed,
    server.values_refused,
    server.foreign_traffic,
    server.server_partly_read,
    server.preemptions,
    server.prefix_cache,
    speculation.lossy_verifier,
    speculation.forced_acceptance,
    speculation.invented_text,
    speculation.acceptance_disagrees,
    client.connections_opened,
)
"""One function a kind, in the order in which findings of the same severity are shown."""
