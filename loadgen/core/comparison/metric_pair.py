"""One metric of two runs, and what its name tells of it."""

from dataclasses import dataclass

from loadgen.core.stats.bootstrap import Estimate

STATISTICS = ("mean", "p50", "p90", "p95", "p99")
LATENCIES = ("ttft_s", "ttft_from_due_s", "ttfo_s", "tpot_s", "icl_s", "itl_s", "e2el_s", "e2el_from_due_s")

POOLED = ("icl_s", "itl_s")
"""Those of gaps between events, whatever request they are of."""

GUIDELLM_TIMES = ("guidellm.time_per_output_token_s", "guidellm.inter_token_latency_s")

METRICS = (
    *(f"{name}.{statistic}" for name in (*LATENCIES, *GUIDELLM_TIMES) for statistic in STATISTICS),
    *("requests_per_s", "output_tokens_per_s", "input_tokens_per_s", "goodput_rps"),
    *("attainment_ratio", "error_ratio", "acceptance_length", "acceptance_ratio", "tokens_per_step"),
)
"""What two runs are compared by, in the order of reports. With a tool's name in front, what only that tool measures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricPair:
    """A metric of the baseline and of a candidate; None where a run has none.

    `ratio` is candidate / baseline: where there is an interval, `low` to `high`, over the requests that it speaks of,
    else of the two values. None without both values, and for a baseline of 0.
    """

    baseline: float | None
    candidate: float | None
    ratio: float | None
    low: float | None
    high: float | None


def pair(baseline: float | None, candidate: float | None, estimate: Estimate | None = None) -> MetricPair:
    """The two values with their ratio; `estimate` is that ratio with its interval, where one is known."""
    if baseline is None or candidate is None:
        return MetricPair(baseline=baseline, candidate=candidate, ratio=None, low=None, high=None)
    if estimate is None:
        ratio = candidate / baseline if baseline else None
        return MetricPair(baseline=baseline, candidate=candidate, ratio=ratio, low=None, high=None)
    return MetricPair(
        baseline=baseline, candidate=candidate, ratio=estimate.value, low=estimate.low, high=estimate.high
    )


def name_of(metric: str) -> str:
    """The metric without its statistic: `ttft_s` of `ttft_s.p99`."""
    name, _, last = metric.rpartition(".")
    return name if last in STATISTICS else metric


def is_time(metric: str) -> bool:
    """Whether it is in seconds."""
    name = name_of(metric)
    return name.endswith("_s") and not name.endswith("_per_s")


def is_share(metric: str) -> bool:
    """Whether it is a share of 0 to 1."""
    return name_of(metric).endswith("_ratio")
