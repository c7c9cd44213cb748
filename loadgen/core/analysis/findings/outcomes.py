"""What became of the requests: ended early, failed, never sent."""

from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.finding import invalid, share, warning
from loadgen.core.analysis.findings.kinds import FindingKind, Severity
from loadgen.core.metrics.summary import Finding, Verdict
from loadgen.core.record import FailureKind


def no_completion(facts: Facts) -> Finding | None:
    """Nothing completed in the window."""
    if facts.completed_in_window:
        return None
    counts = facts.summary.requests
    return invalid(
        FindingKind.NO_COMPLETION,
        f"No request completed in the measured window ({counts.completed} completed at all, {counts.failed} failed).",
        "There is nothing to report. See the failures, or measure for longer than one answer takes.",
    )


def came_to_nothing(verdict: Verdict) -> bool:
    """Whether all that makes a measurement invalid is that nothing completed in it."""
    return {found.kind for found in verdict.findings if found.severity == Severity.INVALID.value} == {
        FindingKind.NO_COMPLETION.value
    }


def interrupted(facts: Facts) -> Finding | None:
    """The run did not end as planned."""
    if not facts.summary.interrupted:
        return None
    lost = f"; {facts.missing_records} planned requests have no record" if facts.missing_records else ""
    reason = facts.manifest.ended_by
    return warning(
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
    return warning(
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
    return warning(
        FindingKind.FAILURES,
        f"{counts.failed} of {ended} requests failed ({share(counts.failed, ended)}): {kinds}.",
        "Latencies cover only requests that completed; read them beside the error-adjusted percentiles.",
    )


def same_error(facts: Facts) -> Finding | None:
    """Every failure is the same refusal of the request, which no load explains."""
    if len(facts.failures) != 1 or facts.failures[0].kind != FailureKind.HTTP_4XX.value:
        return None
    sample = facts.failures[0]
    said = f": {sample.example}" if sample.example else ""
    return warning(
        FindingKind.SAME_ERROR,
        f"Every failure is HTTP {sample.http_status}{said}",
        "The server refuses the request itself. Check key, model, endpoint and request body.",
    )


def arrivals_dropped(facts: Facts) -> Finding | None:
    """Requests fell due and were never sent."""
    dropped = facts.summary.requests.dropped
    if not dropped:
        return None
    return warning(
        FindingKind.ARRIVALS_DROPPED,
        f"{dropped} of {facts.summary.requests.planned} requests were due and never sent.",
        "They count against the objectives. When the run ended they waited for a slot or a previous turn, or the client"
        " had not come to them.",
    )
