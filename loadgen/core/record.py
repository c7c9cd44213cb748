"""What happened to one request. `RequestRecord` is the type in the middle of everything and the file format.

A line of `records.jsonl.zst` is this record as strict JSON: one key a field, in this order. Absent is null. Instants
are integer nanoseconds on the run's monotonic axis (`origin_unix_ns` in the manifest places it in the world).
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from operator import attrgetter

from loadgen.core.request import Phase

RECORD_SCHEMA = "loadgen.record/1"
MESSAGE_LIMIT = 500

COUNT_LIMIT = 2**40
INSTANT_LIMIT_NS = 2**61
"""No count and no instant of a run comes near them: they are tokens by the trillion, and decades. What is computed from
such values stays within 64 bits."""


class Outcome(StrEnum):
    """How a planned request ended: planned = completed + failed + cancelled + dropped."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DROPPED = "dropped"


class FailureKind(StrEnum):
    """Why a request failed. A closed set, so safe as a label."""

    CONNECT = "connect"
    CONNECT_TIMEOUT = "connect_timeout"
    WRITE = "write"
    READ = "read"
    READ_TIMEOUT = "read_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    TOTAL_TIMEOUT = "total_timeout"
    HTTP_4XX = "http_4xx"
    RATE_LIMITED = "rate_limited"
    HTTP_5XX = "http_5xx"
    PROTOCOL = "protocol"
    SERVER_ERROR_EVENT = "server_error_event"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    REUSED_CONNECTION = "reused_connection"
    CLIENT_RESOURCE = "client_resource"
    TLS = "tls"


class TokenSource(StrEnum):
    """Where an output token count comes from: the server's usage, the stream (token ids), or a guess."""

    SERVER = "server"
    STREAM = "stream"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A server's or network's fault. `message` is at most MESSAGE_LIMIT characters, without known secrets."""

    kind: FailureKind
    http_status: int | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSpeculation:
    """One request's own account of speculative decoding, as the server reported it in the response.

    `steps` are verification steps that had a draft; `histogram[j]` counts steps that accepted j draft tokens.
    The per-step lists are there when the server gives them.
    """

    steps: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    histogram: tuple[int, ...] | None = None
    max_draft_tokens: int | None = None
    per_step_accepted: tuple[int, ...] | None = None
    per_step_drafted: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One planned request, once it is over.

    Instants (ns, run axis): `due_ns` planned (None in a closed loop), `sent_ns` just before its first byte left
    (None when never sent), `headers_ns` response status read, `first_ns` and `last_ns` first and last token-bearing
    event, `first_output_ns` first one that is not reasoning, `closed_ns` end of the exchange. `event_ns` has one
    arrival a token-bearing event, non-decreasing; `event_tokens` the tokens in each, when the server tells.

    `cap_wait_ns` is the part of sent - due spent waiting for a free slot or for the session's previous turn;
    `connect_ns` the time that opening a connection for this request took, None when one was ready.
    `stamp_lag_ns` is the largest delay of this request's reads behind the kernel's receive stamp (None without
    kernel stamps); `stalled_events` counts events whose stamp is that of a later segment, because the client read
    too late to tell them apart. `planned_*_tokens` are what the data asked for, the others what the server counted.
    """

    schema: str = RECORD_SCHEMA
    seq: int
    request_id: str
    phase: Phase
    session_id: str | None = None
    turn: int | None = None
    category: str | None = None
    due_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    first_ns: int | None = None
    first_output_ns: int | None = None
    last_ns: int | None = None
    closed_ns: int | None = None
    event_ns: tuple[int, ...] = ()
    event_tokens: tuple[int, ...] | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_from: TokenSource | None = None
    reasoning_tokens: int | None = None
    planned_input_tokens: int | None = None
    planned_output_tokens: int | None = None
    finish_reason: str | None = None
    tool_calls: int | None = None
    outcome: Outcome
    failure: Failure | None = None
    speculation: RequestSpeculation | None = None
    text: str | None = None
    http_status: int | None = None
    streamed: bool | None = None
    cap_wait_ns: int | None = None
    connect_ns: int | None = None
    resent: bool = False
    stamp_lag_ns: int | None = None
    stalled_events: int = 0
    notes: tuple[str, ...] = ()


_COUNTS = (
    "seq",
    "turn",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "planned_input_tokens",
    "planned_output_tokens",
    "tool_calls",
    "http_status",
    "stalled_events",
)
_INSTANTS = (
    "due_ns",
    "sent_ns",
    "headers_ns",
    "first_ns",
    "first_output_ns",
    "last_ns",
    "closed_ns",
    "cap_wait_ns",
    "connect_ns",
    "stamp_lag_ns",
)
_counts_of, _instants_of = attrgetter(*_COUNTS), attrgetter(*_INSTANTS)
_COUNT = f"expected a count from 0 to {COUNT_LIMIT}"
_SPECULATION = tuple(each.name for each in fields(RequestSpeculation))


def impossible(record: RequestRecord) -> str | None:
    """The first field, with what was expected, whose number no run can have had; None when there is none.

    Loadgen writes no such record: it was edited, or its disk is broken.
    """
    for name, count in zip(_COUNTS, _counts_of(record), strict=True):
        if count is not None and not 0 <= count < COUNT_LIMIT:
            return f"{name}: {_COUNT}, found {_short(count)}"
    for name, instant in zip(_INSTANTS, _instants_of(record), strict=True):
        if instant is not None and not -INSTANT_LIMIT_NS < instant < INSTANT_LIMIT_NS:
            return f"{name}: expected nanoseconds of a run, found {_short(instant)}"
    events = record.event_ns
    if events and (max(events) >= INSTANT_LIMIT_NS or min(events) <= -INSTANT_LIMIT_NS):
        return f"event_ns: expected nanoseconds of a run, found {_short(max(events, key=abs))}"
    if (counts := record.event_tokens) and not _are_counts(counts):
        return f"event_tokens: {_COUNT}"
    if (found := record.speculation) is not None:
        for name in _SPECULATION:
            told = getattr(found, name)
            counts = told if isinstance(told, tuple) else () if told is None else (told,)
            if counts and not _are_counts(counts):
                return f"speculation.{name}: {_COUNT}"
    return None


def _are_counts(counts: tuple[int, ...]) -> bool:
    return min(counts) >= 0 and max(counts) < COUNT_LIMIT


def _short(number: int) -> str:
    return str(number) if abs(number) < 10**30 else f"a number of {number.bit_length()} bits"
