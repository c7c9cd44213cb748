"""What is exported, by name: families of series over the totals of runs. The meaning of each is its help text.

`docs/prometheus.md` follows this list.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from loadgen.core.metrics.summary import Distribution, Summary
from loadgen.core.metrics.totals import Length, Timing, Totals
from loadgen.core.run import Load, LoadMode
from loadgen.core.stats.histogram import Histogram

Kind = Literal["counter", "gauge", "histogram"]
PREFIX = "loadgen_"
STATISTICS = ("mean", "p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What tells the series of one server under one workload from those of another."""

    server: str
    method: str
    model: str
    workload: str

    def as_dict(self) -> dict[str, str]:
        """By name."""
        return {"server": self.server, "method": self.method, "model": self.model, "workload": self.workload}


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One series: a number or a histogram; `unix_s` where it is not of now."""

    labels: Mapping[str, str]
    value: float | Histogram
    unix_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A metric. `unit` is the end of its name where Prometheus knows the unit."""

    name: str
    kind: Kind
    help: str
    series: tuple[Series, ...]
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A metric without its values."""

    name: str
    kind: Kind
    help: str
    unit: str = ""

    def family(self, series: Iterable[Series]) -> Family:
        """With values."""
        return Family(name=self.name, kind=self.kind, help=self.help, series=tuple(series), unit=self.unit)


_TIMING_HELP = {
    Timing.TTFT: "Time from sending a request to its first token-bearing event, of completed measured requests.",
    Timing.TPOT: "Time per output token after the first, (last - first) / (tokens - 1), of the same requests.",
    Timing.ICL: "Gap between two events of an answer, pooled over the same requests; an event may hold several tokens.",
    Timing.DURATION: "Time from sending a request to its last token, of completed measured requests.",
    Timing.LAG: "How late measured requests of an open loop were sent, behind the instant when they were due.",
}
TIMINGS = {
    timing: Spec(name=f"{PREFIX}{timing.value}_seconds", kind="histogram", help=text, unit="seconds")
    for timing, text in _TIMING_HELP.items()
}
LENGTHS = {
    Length.INPUT: Spec(
        name=f"{PREFIX}{Length.INPUT.value}",
        kind="histogram",
        help="Input tokens of completed measured requests, where they were counted.",
    ),
    Length.OUTPUT: Spec(
        name=f"{PREFIX}{Length.OUTPUT.value}",
        kind="histogram",
        help="Output tokens of completed measured requests, where they were counted.",
    ),
}


def _spec(name: str, kind: Kind, text: str, unit: str = "") -> Spec:
    return Spec(name=PREFIX + name, kind=kind, help=text, unit=unit)


REQUESTS = _spec("requests_total", "counter", "Measured requests that are over, by how they ended.")
FAILURES = _spec("request_failures_total", "counter", "Measured requests that failed, by why.")
SENT = _spec("requests_sent_total", "counter", "Measured requests that were sent and are over.")
WARMUP = _spec("warmup_requests_total", "counter", "Requests of warm-up that are over; they are in no other metric.")
OUTPUT = _spec("output_tokens_total", "counter", "Output tokens of completed measured requests, counted as each ends.")
INPUT = _spec("input_tokens_total", "counter", "Input tokens of completed measured requests, counted as each ends.")
IN_FLIGHT = _spec("requests_in_flight", "gauge", "Requests that are sent and not over, warm-up included.")
TARGET_CONCURRENCY = _spec(
    "target_concurrency", "gauge", "Requests that the closed loop under way is to keep in flight."
)
TARGET_RATE = _spec("target_rate_rps", "gauge", "Requests a second that the open loop under way is to send.")
LEVEL_LATENCY = _spec(
    "level_latency_seconds",
    "gauge",
    "Latency at a finished level, exact from its records, by metric and statistic.",
    "seconds",
)
LEVEL_NUMBERS = {
    "throughput": _spec("level_request_rate_rps", "gauge", "Completed requests a second at a finished level."),
    "output": _spec(
        "level_output_tokens_per_second", "gauge", "Output tokens that arrived a second at a finished level."
    ),
    "goodput": _spec("level_goodput_rps", "gauge", "Requests a second that met every objective at a finished level."),
    "attainment": _spec(
        "level_slo_attainment_ratio", "gauge", "Share of due requests that met every objective at a finished level."
    ),
    "errors": _spec("level_error_ratio", "gauge", "Share of planned requests that failed or were dropped at a level."),
    "concurrency": _spec("level_concurrency", "gauge", "Mean of requests in flight at a finished level."),
    "acceptance": _spec(
        "level_acceptance_length_tokens", "gauge", "Mean acceptance length at a finished level, bonus token included."
    ),
    "valid": _spec("level_measurement_valid", "gauge", "1 when the measurement of a finished level is valid, else 0."),
}
RUN_INFO = _spec("run_info", "gauge", "1, with what is under way: the command, the name of its folder, the version.")
VALID = _spec("measurement_valid", "gauge", "1 when the latest finished measurement is valid, else 0.")


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


def total_series(labels: Labels, totals: Totals, unix_s: float | None = None) -> Iterator[tuple[Spec, Series]]:
    """All that grows, for one set of labels; each series is there from the beginning, at 0."""
    common = labels.as_dict()

    def series(value: float | Histogram, **more: str) -> Series:
        return Series(labels={**common, **more}, value=value, unix_s=unix_s)

    for timing, histogram in totals.timings.items():
        yield TIMINGS[timing], series(histogram)
    for length, histogram in totals.lengths.items():
        yield LENGTHS[length], series(histogram)
    for outcome, count in totals.outcomes.items():
        yield REQUESTS, series(count, outcome=outcome.value)
    for kind, count in totals.failures.items():
        yield FAILURES, series(count, kind=kind.value)
    yield SENT, series(totals.sent)
    yield WARMUP, series(totals.warmup)
    yield OUTPUT, series(totals.output_tokens)
    yield INPUT, series(totals.input_tokens)


def load_series(
    labels: Labels, load: Load | None, in_flight: int, unix_s: float | None = None
) -> Iterator[tuple[Spec, Series]]:
    """What is asked of a server now, None for nothing, and how much is under way."""
    common = labels.as_dict()
    yield IN_FLIGHT, Series(labels=common, value=in_flight, unix_s=unix_s)
    if load is not None and load.concurrency is not None:
        yield TARGET_CONCURRENCY, Series(labels=common, value=load.concurrency, unix_s=unix_s)
    if load is not None and load.request_rate_rps is not None:
        yield TARGET_RATE, Series(labels=common, value=load.request_rate_rps, unix_s=unix_s)


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
    counts = summary.requests
    numbers = {
        "throughput": summary.throughput.requests_per_s,
        "output": summary.throughput.output_tokens_per_s,
        "goodput": summary.throughput.goodput_rps,
        "attainment": None if summary.slo is None else summary.slo.attainment_ratio,
        "errors": (counts.failed + counts.dropped) / counts.planned if counts.planned else None,
        "concurrency": summary.concurrency.mean,
        "acceptance": None if summary.speculation is None else summary.speculation.acceptance_length,
        "valid": int(summary.verdict.valid),
    }
    for name, number in numbers.items():
        if number is not None:
            yield LEVEL_NUMBERS[name], Series(labels=common, value=number, unix_s=unix_s)


SPECS = (
    *TIMINGS.values(),
    *LENGTHS.values(),
    *(REQUESTS, FAILURES, SENT, WARMUP, OUTPUT, INPUT, IN_FLIGHT, TARGET_CONCURRENCY, TARGET_RATE),
    *(LEVEL_LATENCY, *LEVEL_NUMBERS.values(), RUN_INFO, VALID),
)
"""Every metric, in the order of the page."""


def families_of(pairs: Iterable[tuple[Spec, Series]]) -> list[Family]:
    """Series by family; a family without series is left out."""
    by_name: dict[str, list[Series]] = {spec.name: [] for spec in SPECS}
    for spec, series in pairs:
        by_name[spec.name].append(series)
    return [spec.family(by_name[spec.name]) for spec in SPECS if by_name[spec.name]]
