"""What one request's record says, in seconds: each metric's formula, once.

Every function returns None where the definition has no value. Which requests a distribution is made of is decided where
records are folded (`loadgen.core.analysis`), not here; `docs/metrics.md` has the definitions in words.
"""

from collections.abc import Callable, Mapping

from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.units import NS_PER_S

MIN_DECODE_SPAN_S = 0.001
"""A first and a last token closer together than this were not timed apart: no time per output token."""

FAT_FIRST_RATIO = 0.5
"""A first event with more than this share of the answer's tokens leaves too little that was timed."""


def schedule_lag_s(record: RequestRecord) -> float | None:
    """sent - due: how late the request left. None without a due instant (closed loop) or when never sent."""
    return _between(record.due_ns, record.sent_ns)


def cap_wait_s(record: RequestRecord) -> float | None:
    """The part of the schedule lag spent waiting for a free slot or for the session's previous turn.

    None when never sent or when nothing could make the request wait.
    """
    return None if record.cap_wait_ns is None or record.sent_ns is None else record.cap_wait_ns / NS_PER_S


def own_lag_s(record: RequestRecord) -> float | None:
    """Schedule lag without the wait for cap or session: what is held against the client. None as `schedule_lag_s`."""
    lag = schedule_lag_s(record)
    return None if lag is None else lag - (cap_wait_s(record) or 0.0)


def ttft_s(record: RequestRecord) -> float | None:
    """Time to first token: first token-bearing event of any kind - sent. None for a reply that was not streamed."""
    return _between(record.sent_ns, record.first_ns) if is_streamed(record) else None


def ttft_from_due_s(record: RequestRecord) -> float | None:
    """First token-bearing event - due: schedule lag + TTFT. None without a due instant, else as `ttft_s`."""
    return _between(record.due_ns, record.first_ns) if is_streamed(record) else None


def ttfo_s(record: RequestRecord) -> float | None:
    """Time to first output: first event that is not reasoning - sent. None when there was none, else as `ttft_s`."""
    return _between(record.sent_ns, record.first_output_ns) if is_streamed(record) else None


def e2el_s(record: RequestRecord) -> float | None:
    """End-to-end latency: last token - sent; for a reply that was not streamed, last byte of the body - sent."""
    return _between(record.sent_ns, record.last_ns)


def e2el_from_due_s(record: RequestRecord) -> float | None:
    """Last token - due. None without a due instant."""
    return _between(record.due_ns, record.last_ns)


def tpot_s(record: RequestRecord) -> float | None:
    """Time per output token after the first: (last - first) / (N - 1), N = `streamed_tokens`.

    None when N is unknown or below 2, when first and last token are closer than `MIN_DECODE_SPAN_S`, and when the first
    event alone held more than `FAT_FIRST_RATIO` of the tokens: N - 1 would then count tokens that the span never saw.
    """
    tokens = streamed_tokens(record)
    if not is_streamed(record) or tokens is None or tokens < 2:
        return None
    span = _between(record.first_ns, record.last_ns)
    if span is None or span < MIN_DECODE_SPAN_S:
        return None
    return None if first_event_tokens(record) > FAT_FIRST_RATIO * tokens else span / (tokens - 1)


def streamed_tokens(record: RequestRecord) -> int | None:
    """Output tokens that can have been streamed: the record's count (the server's first) without hidden reasoning.

    Reasoning tokens are part of the output tokens and are counted once. None without a count: events are not tokens.
    """
    tokens = output_tokens(record)
    if tokens is None or record.reasoning_tokens is None or not hides_reasoning(record):
        return tokens
    return tokens - record.reasoning_tokens


def output_tokens(record: RequestRecord) -> int | None:
    """Output tokens: the record's count, else those known to be in its events; None without either."""
    if record.output_tokens is None and record.event_tokens is not None:
        return sum(record.event_tokens)
    return record.output_tokens


def hides_reasoning(record: RequestRecord) -> bool:
    """Whether the server counted reasoning tokens that it did not stream.

    So it is when the very first event is already output, and the tokens known to be in the events do not make up the
    whole count either.
    """
    if not record.reasoning_tokens or record.output_tokens is None or not is_streamed(record):
        return False
    if record.reasoning_tokens > record.output_tokens:
        return False  # counts that contradict each other prove nothing
    if record.event_tokens is not None and sum(record.event_tokens) > record.output_tokens - record.reasoning_tokens:
        return False
    return record.first_output_ns is not None and record.first_output_ns == record.first_ns


def first_event_tokens(record: RequestRecord) -> int:
    """Tokens in the first event: as the server told; all reasoning, if it came in one piece before the output; or 1."""
    if record.event_tokens:
        return record.event_tokens[0]
    reasoning_in_one_event = (
        len(record.event_ns) > 1 and record.first_output_ns == record.event_ns[1] != record.first_ns
    )
    return record.reasoning_tokens if record.reasoning_tokens and reasoning_in_one_event else 1


def has_one_token_events(record: RequestRecord) -> bool:
    """Whether every event held exactly one token, so that gaps between events are gaps between tokens.

    Known from the tokens of each event, or because the server counted as many tokens as there were events.
    """
    if record.event_tokens is not None:
        return record.event_tokens.count(1) == len(record.event_tokens)
    return record.output_tokens is not None and record.output_tokens == len(record.event_ns)


def is_streamed(record: RequestRecord) -> bool:
    """Whether the reply came as a stream of events. A whole JSON body has no first token, whatever was asked for."""
    return record.streamed is not False and record.first_ns is not None


def is_good(record: RequestRecord, objectives: Mapping[str, float]) -> bool:
    """Completed, with a value at or under its limit for every objective; a missing value is not good."""
    if record.outcome is not Outcome.COMPLETED:
        return False
    values = ((REQUEST_METRICS[name](record), limit) for name, limit in objectives.items())
    return all(value is not None and value <= limit for value, limit in values)


def _between(start_ns: int | None, end_ns: int | None) -> float | None:
    return None if start_ns is None or end_ns is None else (end_ns - start_ns) / NS_PER_S


REQUEST_METRICS: Mapping[str, Callable[[RequestRecord], float | None]] = {
    "ttft_s": ttft_s,
    "ttft_from_due_s": ttft_from_due_s,
    "ttfo_s": ttfo_s,
    "tpot_s": tpot_s,
    "e2el_s": e2el_s,
    "e2el_from_due_s": e2el_from_due_s,
    "schedule_lag_s": schedule_lag_s,
    "cap_wait_s": cap_wait_s,
}
"""Metrics with one value a request, by name."""
