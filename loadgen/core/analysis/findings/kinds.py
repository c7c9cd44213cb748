"""What a doubt is about, and how grave it is."""

from enum import StrEnum


class FindingKind(StrEnum):
    """What a finding is about. A closed set."""

    SENT_BELOW_OFFERED = "sent_below_offered"
    CLIENT_LAG = "client_lag"
    CLIENT_CPU = "client_cpu"
    WORKER_LOST = "worker_lost"
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
    LIMIT_EXCEEDED = "limit_exceeded"
    ENDED_EARLY = "ended_early"
    INPUT_LENGTH = "input_length"
    OBJECTIVE_WITHOUT_VALUE = "objective_without_value"
    WARMUP_DRIFT = "warmup_drift"
    OVERLOADED = "overloaded"
    NOT_STEADY = "not_steady"
    SHORT_WINDOW = "short_window"
    TOO_FEW_REQUESTS = "too_few_requests"
    SERVER_RESTARTED = "server_restarted"
    SCRAPE_FAILED = "scrape_failed"
    VALUES_REFUSED = "values_refused"
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
