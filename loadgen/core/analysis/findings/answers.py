"""Whether answers can be measured as they came: streamed, counted, timed, and of the length asked for."""

from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.finding import info, share, warning
from loadgen.core.analysis.findings.kinds import FindingKind
from loadgen.core.metrics.summary import Finding
from loadgen.core.request import LIMITS
from loadgen.core.run import RunManifest

COUNTS_DIFFER_RATIO = 0.02
DECODE_UNTIMED_RATIO = 0.05
LENGTH_DIFFERS_RATIO = 0.1
INPUT_OTHER_FACTOR = 2.0
FIRST_SEVERAL_RATIO = 0.01

_OWN_LIMITS = frozenset({*LIMITS, "min_tokens", "ignore_eos", "n"})
"""Fields of a body by which a user bounds answers himself, or their number, over what the data and the options say."""


def not_streamed(facts: Facts) -> Finding | None:
    """A stream was asked for and whole bodies came."""
    count = facts.oddities.not_streamed
    if not count or facts.manifest.options.get("stream") is False:
        return None
    return warning(
        FindingKind.NOT_STREAMED,
        f"{count} of {facts.summary.requests.completed} replies were not streamed although a stream was asked for.",
        "They have an end-to-end latency only. Check that server and proxy support streaming on this endpoint.",
    )


def usage_missing(facts: Facts) -> Finding | None:
    """Some completed requests have no token count by the server."""
    count = facts.summary.tokens.requests_without_server_count
    if not count:
        return None
    return warning(
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
    return warning(
        FindingKind.TOKEN_COUNTS_DISAGREE,
        f"The server's usage and the tokens in the streams differ by {difference} of {counted} tokens"
        f" ({share(difference, counted)}).",
        "TPOT uses the server's count. Find out which is wrong before comparing token rates.",
    )


def reasoning_hidden(facts: Facts) -> Finding | None:
    """Reasoning was counted and not streamed."""
    count = facts.oddities.reasoning_hidden
    if not count:
        return None
    return warning(
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
    return warning(
        FindingKind.DECODE_NOT_TIMED,
        f"{count} of {several} answers of two tokens or more arrived at once or mostly in their first event.",
        "They have no TPOT and keep their other metrics. A buffer, or a parser that holds text back, is likely.",
    )


def first_event_several(facts: Facts) -> Finding | None:
    """First events held several tokens, so that N - 1 overstates what came after them."""
    oddities = facts.oddities
    if not oddities.timed or oddities.first_event_several <= FIRST_SEVERAL_RATIO * oddities.timed:
        return None
    return info(
        FindingKind.FIRST_EVENT_SEVERAL,
        f"In {oddities.first_event_several} of {oddities.timed} answers the first event held several tokens;"
        f" TPOT, which divides by N - 1, is too low by {share(oddities.overstated_sum, oddities.timed)} on average.",
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


def limit_exceeded(facts: Facts) -> Finding | None:
    """Answers have more tokens than the request allowed."""
    oddities = facts.oddities
    if oddities.longest is None or not _OWN_LIMITS.isdisjoint(facts.manifest.options.get("extra_body") or ()):
        return None
    found, bound = oddities.longest
    return warning(
        FindingKind.LIMIT_EXCEEDED,
        f"{oddities.beyond_bound} of {oddities.bounded} answers have more output tokens than they were allowed,"
        f" {found} where {bound} were for example.",
        "The server does not keep to max_tokens, or counts tokens that it did not send. Its work is not the one that"
        " others are asked for.",
    )


def ended_early(facts: Facts) -> Finding | None:
    """Answers ended before their length although the end of text was to be ignored."""
    oddities, options = facts.oddities, facts.manifest.options
    if not oddities.below_bound or options.get("ignore_eos") is not True:
        return None
    if not _OWN_LIMITS.isdisjoint(options.get("extra_body") or ()):
        return None
    return warning(
        FindingKind.ENDED_EARLY,
        f"{oddities.below_bound} of {oddities.bounded} answers ended before the length asked for"
        f" ({share(oddities.below_bound, oddities.bounded)}), although the end of text was to be ignored.",
        "The server does not know ignore_eos, or its context was full. Its work is not the one that others are asked"
        " for.",
    )


def input_length(facts: Facts) -> Finding | None:
    """Prompts are not as long as the data asked for. Far from it, they are another load than the one meant."""
    planned, actual = facts.oddities.planned_input, facts.oddities.actual_input
    found = _length(
        FindingKind.INPUT_LENGTH,
        "input",
        planned,
        actual,
        f"All numbers use the server's count, which includes its chat template. {_input_advice(facts.manifest)}",
    )
    if found is None or planned / INPUT_OTHER_FACTOR <= actual <= planned * INPUT_OTHER_FACTOR:
        return found
    return warning(FindingKind.INPUT_LENGTH, f"{found.evidence} This is not the load that was asked for.", found.advice)


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
    return info(kind, f"{actual} {what} tokens where {planned} were asked for ({actual / planned:.2f} x).", advice)


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
    return warning(
        FindingKind.OBJECTIVE_WITHOUT_VALUE,
        f"Completed requests without a value for an objective, hence not good: {listed}.",
        "One-token answers have no TPOT, a closed loop no latency from due. Choose objectives that every request has.",
    )
