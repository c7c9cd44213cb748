"""The summary of a run as values: field for field the contract of `summary.json`."""

from dataclasses import dataclass, field

from loadgen.core.run import Load, Target
from loadgen.core.server.configuration import ServerConfiguration, SpeculationConfiguration
from loadgen.core.server.series import ServerSeries
from loadgen.core.stats.bootstrap import Estimate

SUMMARY_SCHEMA = "loadgen.summary/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A sample of one quantity: latencies in seconds. A percentile that the sample cannot carry is None.

    `n` values were there, `missing` counted requests had none.
    """

    n: int
    missing: int
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    p50: float | None = None
    p75: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p99_9: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounts:
    """planned = completed + failed + cancelled + dropped, over the measured phase."""

    planned: int
    sent: int
    completed: int
    failed: int
    cancelled: int
    dropped: int
    resent: int
    failed_by_kind: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """Tokens of completed measured requests; `partial_output` is what failed and cancelled ones had streamed.

    `output_from_server` says that every completed request's count came from the server's usage;
    `requests_without_server_count` counts those whose did not.
    """

    input: int | None
    output: int | None
    output_from_server: bool
    requests_without_server_count: int
    partial_output: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Rates over the window: completions, tokens that arrived, input tokens of requests sent, good completions."""

    requests_per_s: float | None
    output_tokens_per_s: float | None
    input_tokens_per_s: float | None
    goodput_rps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Due and sent requests of the window over its length."""

    offered_rps: float | None
    sent_rps: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """Requests in flight, by a sweep over [sent, closed): the largest, and the time-weighted mean in the window."""

    peak: int
    mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """The latency distributions, named as in `docs/metrics.md`."""

    ttft_s: Distribution
    ttft_from_due_s: Distribution
    ttfo_s: Distribution
    tpot_s: Distribution
    icl_s: Distribution
    itl_s: Distribution
    e2el_s: Distribution
    e2el_from_due_s: Distribution
    schedule_lag_s: Distribution
    cap_wait_s: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """`objectives` maps a metric to its limit in seconds; `attainment_ratio` = good / due."""

    objectives: dict[str, float]
    attainment_ratio: float | None
    good: int
    due: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceView:
    """Acceptance as one origin tells it.

    `origin` is who counted: `counters` of the server's metrics page, `per_request` blocks in the responses, the tokens
    in each event of the `stream`, or an engine's own `gauge`. `population` is what it counted: `drafting_steps` only,
    or all `decode_steps`; length, ratio, positions, histogram and counts are of that population, `tokens_per_step` is
    over all decode steps. `scope` is where: the completed `measured_requests`, or everything that the server did in
    the `window`. `coverage_ratio` is drafting steps / decode steps.
    """

    origin: str
    population: str
    scope: str
    acceptance_length: float | None = None
    acceptance_ratio: float | None = None
    by_position: tuple[float, ...] | None = None
    conditional_by_position: tuple[float | None, ...] | None = None
    histogram: tuple[int, ...] | None = None
    steps: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    coverage_ratio: float | None = None
    tokens_per_step: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One quantity as two origins tell it: left, right, and left - right.

    `allowed` are the smallest and the largest difference that the definitions of the two explain, in words in `why`.
    It and `agrees` are None where nothing bounds the difference, the values where an origin has none.
    """

    left: str
    right: str
    quantity: str
    left_value: float | None
    right_value: float | None
    difference: float | None
    allowed: tuple[float, float] | None
    agrees: bool | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPositionBin:
    """Decode steps that began at the output tokens `first` to `last`, both included, counted from 1.

    `low` and `high` bound `tokens_per_step` with 95 % confidence; None with too few requests.
    """

    first: int
    last: int
    requests: int
    steps: int
    tokens_per_step: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryAcceptance:
    """The completed measured requests of one category of the data; fields as in `AcceptanceView`."""

    category: str
    requests: int
    origin: str
    population: str
    steps: int | None
    acceptance_length: float | None
    acceptance_ratio: float | None
    tokens_per_step: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAcceptance:
    """Distributions with one value a request, in tokens: their means weigh requests where pooled figures weigh steps.

    `acceptance_length` is of the server's block in each response, `tokens_per_step` over all decode steps.
    """

    acceptance_length: Distribution
    tokens_per_step: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPoint:
    """One request of a scatter plot."""

    tokens_per_step: float
    tpot_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TpotByAcceptance:
    """How a request's TPOT goes with its tokens per step, over the `n` requests that have both.

    `slope` is d log(TPOT) / d log(tokens per step): -1 when a step takes the same time however many tokens it emits.
    `correlation` is that of the two logarithms. Both are None with too few requests or no spread. `points` are evenly
    chosen requests in the order of their tokens per step.
    """

    n: int
    slope: Estimate | None
    correlation: float | None
    points: tuple[RequestPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Acceptance, headline first: the figures of the view that `origin` names. Definitions: `docs/metrics.md`.

    `tokens_per_step` is over all decode steps whatever the origin. `method`, `draft_tokens` and `forced` acceptance are
    what the server says of its configuration, None where it says nothing. `oversize_events` held more tokens than a
    step can emit. `agreement` compares the origins with one another over all requests of the run.
    """

    origin: str
    population: str | None = None
    acceptance_length: float | None = None
    acceptance_ratio: float | None = None
    acceptance_by_position: tuple[float, ...] | None = None
    steps: int | None = None
    drafted_tokens: int | None = None
    accepted_tokens: int | None = None
    coverage_ratio: float | None = None
    tokens_per_step: float | None = None
    method: str | None = None
    draft_tokens: int | None = None
    forced: bool | None = None
    oversize_events: int = 0
    per_request: RequestAcceptance | None = None
    tpot_by_acceptance: TpotByAcceptance | None = None
    by_output_position: tuple[OutputPositionBin, ...] = ()
    by_category: tuple[CategoryAcceptance, ...] = ()
    views: tuple[AcceptanceView, ...] = ()
    agreement: tuple[Comparison, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A state of the server over the window: its mean over time, and the largest value read or at an end."""

    mean: float | None = None
    peak: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """Where requests spent their time in the server, as it counts: mean seconds, and shares of the three together."""

    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    queue_ratio: float | None = None
    prefill_ratio: float | None = None
    decode_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """The GPUs over the window, all together: use is their mean with the busiest one's peak, all else a sum.

    `energy_origin` is `counter` or, from power readings, `power`.
    """

    count: int
    utilisation_ratio: Gauge = field(default_factory=Gauge)
    memory_used_bytes: Gauge = field(default_factory=Gauge)
    power_w: float | None = None
    energy_j: float | None = None
    energy_origin: str | None = None
    energy_per_output_token_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What the server told: how it is set up, and its own figures. Definitions: `docs/metrics.md`.

    `scraped` says that its counters were read before the first request and after the last one; `notes` say why not, or
    what to know. `pages` are addresses by source. Counters are over `start_s` to `end_s`, the pages around the window,
    and None after one of the `resets`; the two deltas are over the whole run.
    """

    scraped: bool = False
    notes: tuple[str, ...] = ()
    pages: dict[str, str] = field(default_factory=dict)
    scrapes: int = 0
    failed_scrapes: int = 0
    failed_example: str | None = None
    processes: int = 0
    start_s: float | None = None
    end_s: float | None = None
    resets: tuple[str, ...] = ()
    prompt_tokens_delta: float | None = None
    generation_tokens_delta: float | None = None
    running_requests: Gauge = field(default_factory=Gauge)
    waiting_requests: Gauge = field(default_factory=Gauge)
    kv_used_ratio: Gauge = field(default_factory=Gauge)
    preemptions: float | None = None
    prefix_hit_ratio: float | None = None
    request_times: RequestTimes = field(default_factory=RequestTimes)
    tokens_per_iteration: float | None = None
    gpus: Gpus | None = None
    configuration: ServerConfiguration | None = None
    speculation: SpeculationConfiguration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The client's own health over the window. `stamp_lag_p99_s` is over requests, each by its worst read."""

    timing_source: str
    workers: int
    cpu_ratio: float | None = None
    stamp_lag_p99_s: float | None = None
    coalesced_ratio: float | None = None
    stalled_ratio: float | None = None
    loop_stall_p99_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A doubt about the measurement: `kind` from a closed set, `severity` info, warning or invalid, text for people."""

    kind: str
    severity: str
    evidence: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the measurement may be believed: invalid when any finding is."""

    valid: bool
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """The longest span in which concurrency stayed near its plateau; times are seconds on the run's axis."""

    start_s: float
    end_s: float
    requests_per_s: float | None
    output_tokens_per_s: float | None
    concurrency_mean: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """Per-bin series over the whole run, warm-up and drain included; bins of `step_s` from `start_s`.

    A bin without a value holds None. Latency medians are by the bin in which the request was sent.
    """

    start_s: float
    step_s: float
    due: tuple[int, ...]
    sent: tuple[int, ...]
    completed: tuple[int, ...]
    failed: tuple[int, ...]
    output_tokens: tuple[float, ...]
    concurrency: tuple[float, ...]
    ttft_p50_s: tuple[float | None, ...]
    ttft_p95_s: tuple[float | None, ...]
    tpot_p50_s: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFacts:
    """The measured window, seconds on the run's axis; `kind` as in `run.Window`."""

    start_s: float
    end_s: float
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`summary.json`. `server_series` has the bins of the time series; None when no page was read."""

    schema: str = SUMMARY_SCHEMA
    run_id: str
    name: str | None
    labels: dict[str, str]
    started_at: str
    duration_s: float | None
    interrupted: bool
    target: Target
    load: Load
    requests: RequestCounts
    tokens: TokenCounts
    throughput: Throughput
    rate: Rates
    concurrency: Concurrency
    latency: Latency
    latency_error_adjusted: dict[str, Distribution]
    slo: Slo | None
    speculation: Speculation | None
    server: Server
    client: Client
    window: WindowFacts | None
    steady_state: SteadyState | None
    warmup_requests: int
    time_series: TimeSeries | None
    server_series: ServerSeries | None = None
    estimator: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileCurve:
    """A latency distribution as points (share 0..1, seconds), for drawing; both ascending."""

    p: tuple[float, ...]
    value_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureSample:
    """Failures of one kind and HTTP status, with the message of one of them."""

    kind: str
    http_status: int | None
    count: int
    example: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A summary with what a report draws beside it. `curves` is keyed by metric name, such as `ttft_s`."""

    summary: Summary
    curves: dict[str, QuantileCurve]
    failures: tuple[FailureSample, ...]


SWEEP_SCHEMA = "loadgen.sweep/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLevel:
    """One level of a ladder: the concurrency or the rate (rps) that was asked for, and what came of it."""

    level: float
    summary: Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """The level beyond which more load buys little; `reason` says in words how it was found."""

    level: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A ladder of runs against one server. `variable` is `concurrency` or `request_rate_rps`.

    `asked` are the levels that were to run, empty where that is not known; those beyond `levels` never did. Without a
    knee `no_knee` says why.
    """

    schema: str = SWEEP_SCHEMA
    sweep_id: str
    name: str | None
    variable: str
    asked: tuple[float, ...] = ()
    levels: tuple[SweepLevel, ...]
    knee: Knee | None
    no_knee: str | None = None
