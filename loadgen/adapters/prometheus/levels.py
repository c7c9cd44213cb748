"""Metrics of levels: which one is under way, and the results of those that are finished, exact from their records."""

from collections.abc import Iterator
from dataclasses import dataclass

from loadgen.adapters.prometheus.series import Labels, Series, Spec
from loadgen.core.metrics.summary import Distribution, Summary
from loadgen.core.run import Load, LoadMode

STATISTICS = ("mean", "p50", "p90", "p95", "p99")

LEVEL_LATENCY = Spec.of(
    "level_latency_seconds",
    "gauge",
    "Latency at a finished level, exact from its records, by metric and statistic.",
    "seconds",
)
LEVEL_NUMBERS = {
    "throughput": Spec.of("level_request_rate_rps", "gauge", "Completed requests a second at a finished level."),
    "output": Spec.of(
        "level_output_tokens_per_second", "gauge", "Output tokens that arrived a second at a finished level."
    ),
    "goodput": Spec.of("level_goodput_rps", "gauge", "Requests a second that met every objective at a finished level."),
    "attainment": Spec.of(
        "level_slo_attainment_ratio", "gauge", "Share of due requests that met every objective at a finished level."
    ),
    "errors": Spec.of("level_error_ratio", "gauge", "Share of planned requests that failed or were dropped."),
    "concurrency": Spec.of("level_concurrency", "gauge", "Mean of requests in flight at a finished level."),
    "acceptance": Spec.of(
        "level_acceptance_length_tokens", "gauge", "Mean acceptance length at a finished level, bonus token included."
    ),
    "acceptance_ratio": Spec.of(
        "level_acceptance_ratio", "gauge", "Share of drafted tokens that were accepted at a finished level."
    ),
    "tokens_per_step": Spec.of(
        "level_tokens_per_step", "gauge", "Output tokens a decode step at a finished level, over all steps."
    ),
    "offered": Spec.of("level_offered_rate_rps", "gauge", "Requests a second that were due at a finished level."),
    "sent": Spec.of("level_sent_rate_rps", "gauge", "Requests a second that were sent at a finished level."),
    "cpu": Spec.of("level_client_cpu_ratio", "gauge", "Share of a core that the load generator used at a level."),
    "stamp_lag": Spec.of(
        "level_client_stamp_lag_seconds",
        "gauge",
        "How much later than the kernel the load generator itself saw what arrived at a level: p99 of requests.",
        "seconds",
    ),
    "valid": Spec.of("level_measurement_valid", "gauge", "1 when the measurement of a level is valid, else 0."),
}
LEVEL_POSITIONS = Spec.of(
    "level_acceptance_by_position_ratio",
    "gauge",
    "Share of drafts whose token at a position was accepted at a finished level; position 0 is the first drafted.",
)
UNDER_WAY = Spec.of("level_under_way", "gauge", "1 while this level is measured.")
LEVEL_SPECS = (UNDER_WAY, LEVEL_LATENCY, *LEVEL_NUMBERS.values(), LEVEL_POSITIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A load under which a server was or is measured."""

    labels: Labels
    variable: str
    level: str

    def as_dict(self) -> dict[str, str]:
        """Labels of its results."""
        return {**self.labels.as_dict(), "variable": self.variable, "level": self.level}


def level_of(labels: Labels, load: Load) -> Level:
    """The level that a load is, named as it was asked for."""
    match load.mode:
        case LoadMode.CONCURRENCY:
            return Level(labels=labels, variable="concurrency", level=str(load.concurrency))
        case LoadMode.RATE:
            return Level(labels=labels, variable="request_rate_rps", level=f"{load.request_rate_rps:g}")
        case LoadMode.REPLAY:
            return Level(labels=labels, variable="replay_speed", level=f"{load.speed:g}")


def level_series(level: Level, summary: Summary, unix_s: float | None = None) -> Iterator[tuple[Spec, Series]]:
    """The results of a finished level; what has no value has no series."""
    common = level.as_dict()
    latency = summary.latency
    distributions: dict[str, Distribution] = {
        "ttft": latency.ttft_s,
        "tpot": latency.tpot_s,
        "icl": latency.icl_s,
        "e2el": latency.e2el_s,
        "schedule_lag": latency.schedule_lag_s,
    }
    for metric, distribution in distributions.items():
        for statistic in STATISTICS:
            value = getattr(distribution, statistic)
            if value is not None:
                labels = {**common, "metric": metric, "statistic": statistic}
                yield LEVEL_LATENCY, Series(labels=labels, value=value, unix_s=unix_s)
    for name, number in _numbers(summary).items():
        if number is not None:
            yield LEVEL_NUMBERS[name], Series(labels=common, value=number, unix_s=unix_s)
    speculation = summary.speculation
    for position, share in enumerate(() if speculation is None else speculation.acceptance_by_position or ()):
        yield LEVEL_POSITIONS, Series(labels={**common, "position": str(position)}, value=share, unix_s=unix_s)


def _numbers(summary: Summary) -> dict[str, float | None]:
    counts, speculation = summary.requests, summary.speculation
    return {
        "throughput": summary.throughput.requests_per_s,
        "output": summary.throughput.output_tokens_per_s,
        "goodput": summary.throughput.goodput_rps,
        "attainment": None if summary.slo is None else summary.slo.attainment_ratio,
        "errors": (counts.failed + counts.dropped) / counts.planned if counts.planned else None,
        "concurrency": summary.concurrency.mean,
        "acceptance": None if speculation is None else speculation.acceptance_length,
        "acceptance_ratio": None if speculation is None else speculation.acceptance_ratio,
        "tokens_per_step": None if speculation is None else speculation.tokens_per_step,
        "offered": summary.rate.offered_rps,
        "sent": summary.rate.sent_rps,
        "cpu": summary.client.cpu_ratio,
        "stamp_lag": summary.client.stamp_lag_p99_s,
        "valid": int(summary.verdict.valid),
    }
