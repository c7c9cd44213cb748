"""What is exported, by name: families of series over the totals of runs. The meaning of each is its help text.

`docs/prometheus.md` follows this list.
"""

from collections.abc import Iterable, Iterator

from loadgen.adapters.prometheus.capacity import CAPACITY_SPECS
from loadgen.adapters.prometheus.levels import LEVEL_SPECS, UNDER_WAY, level_of
from loadgen.adapters.prometheus.series import PREFIX, Family, Labels, Series, Spec
from loadgen.core.metrics.totals import Length, Timing, Totals
from loadgen.core.run import Load
from loadgen.core.stats.histogram import Histogram

__all__ = ["Family", "Labels", "Series", "Spec"]

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
REQUESTS = Spec.of("requests_total", "counter", "Measured requests that are over, by how they ended.")
FAILURES = Spec.of("request_failures_total", "counter", "Measured requests that failed, by why.")
SENT = Spec.of("requests_sent_total", "counter", "Measured requests that were sent and are over.")
WARMUP = Spec.of("warmup_requests_total", "counter", "Requests of warm-up that are over; they are in no other metric.")
OUTPUT = Spec.of(
    "output_tokens_total", "counter", "Output tokens of completed measured requests, counted as each ends."
)
INPUT = Spec.of("input_tokens_total", "counter", "Input tokens of completed measured requests, counted as each ends.")
IN_FLIGHT = Spec.of("requests_in_flight", "gauge", "Requests that are sent and not over, warm-up included.")
TARGET_CONCURRENCY = Spec.of(
    "target_concurrency", "gauge", "Requests that the closed loop under way is to keep in flight."
)
TARGET_RATE = Spec.of("target_rate_rps", "gauge", "Requests a second that the open loop under way is to send.")
RUN_INFO = Spec.of("run_info", "gauge", "1, with what is under way: the command, the name of its folder, the version.")
VALID = Spec.of("measurement_valid", "gauge", "1 when the latest finished measurement is valid, else 0.")


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
    if load is not None:
        yield UNDER_WAY, Series(labels=level_of(labels, load).as_dict(), value=1, unix_s=unix_s)


SPECS = (
    *TIMINGS.values(),
    *LENGTHS.values(),
    *(REQUESTS, FAILURES, SENT, WARMUP, OUTPUT, INPUT, IN_FLIGHT, TARGET_CONCURRENCY, TARGET_RATE),
    *(*LEVEL_SPECS, *CAPACITY_SPECS, RUN_INFO, VALID),
)
"""Every metric, in the order of the page."""


def families_of(pairs: Iterable[tuple[Spec, Series]]) -> list[Family]:
    """Series by family; a family without series is left out."""
    by_name: dict[str, list[Series]] = {spec.name: [] for spec in SPECS}
    for spec, series in pairs:
        by_name[spec.name].append(series)
    return [spec.family(by_name[spec.name]) for spec in SPECS if by_name[spec.name]]
