"""Whether acceptance may be believed, and what it was measured on."""

from loadgen.core.analysis.findings.facts import Facts
from loadgen.core.analysis.findings.finding import info, warning
from loadgen.core.analysis.findings.kinds import FindingKind
from loadgen.core.metrics.summary import Comparison, Finding

ACCEPTANCE_DIFFERS_RATIO = 0.01
STREAM_DIFFERS_RATIO = 0.05


def lossy_verifier(facts: Facts) -> Finding | None:
    """The server accepts drafts that the target model would not have drawn."""
    speculation = facts.summary.server.speculation
    if speculation is None or not speculation.lossy:
        return None
    return warning(
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
    return info(
        FindingKind.FORCED_ACCEPTANCE,
        f"The server makes its acceptance up{to}.",
        "The text means nothing; the times are those of a drafter that would be accepted so.",
    )


def invented_text(facts: Facts) -> Finding | None:
    """Acceptance was measured on text that nobody wrote."""
    if facts.summary.speculation is None or facts.manifest.data.get("text") != "invented":
        return None
    return warning(
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
    return warning(FindingKind.ACCEPTANCE_DISAGREES, f"More than the definitions explain: {said}.", advice)


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
