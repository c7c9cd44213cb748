"""What a collector gets is what the page says, by names that everybody knows, and none of it was observed again."""

import itertools
import re
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric
from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from loadgen.adapters.otlp.names import LATEST, OF_1_41, conventions, own_name
from loadgen.adapters.otlp.points import Form, metrics
from loadgen.adapters.prometheus.families import SPECS
from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.core.stats.histogram import Histogram
from tests.adapters.otlp.receiver import attributes
from tests.adapters.prometheus.pages import LABELS, monitor_of
from tests.core.analysis.factory import answered, failed

FORM = Form(conventions=OF_1_41, operation="chat", start_ns=5)
DOCUMENT = (Path(__file__).parents[3] / "docs" / "prometheus.md").read_text(encoding="utf-8")


def told(monitor: Monitor, form: Form = FORM) -> dict[str, Metric]:
    """The metrics of a push, as they are on the wire."""
    scope = ScopeMetrics(InstrumentationScope("test"), metrics(monitor.families(), form, now_ns=9), "")
    request = encode_metrics(MetricsData([ResourceMetrics(Resource({}), [scope], "")]))
    found = list(request.resource_metrics[0].scope_metrics[0].metrics)
    assert len({metric.name for metric in found}) == len(found)
    return {metric.name: metric for metric in found}


def on_the_page(monitor: Monitor, name: str) -> Histogram:
    """The only histogram of a family."""
    (family,) = (family for family in monitor.families() if family.name == name)
    value = family.series[0].value
    assert isinstance(value, Histogram)
    return value


def test_prometheus_makes_the_names_of_the_page_from_our_own() -> None:
    """By its rules: dots to underscores, the unit at the end, and `_total` for what only grows."""
    for spec in SPECS:
        name = own_name(spec.name)
        made = name.name.replace(".", "_") + {"s": "_seconds", "": ""}[name.unit]
        assert made + ("_total" if spec.kind == "counter" else "") == spec.name


def test_a_histogram_has_the_counts_of_the_page() -> None:
    """Bucket by bucket, over all that was counted, with requests as examples."""
    monitor = monitor_of([answered(number, ttft_ms=1 + number**2) for number in range(40)])
    metric = told(monitor)["loadgen.time_to_first_token"]
    assert (metric.unit, metric.histogram.aggregation_temporality) == (
        "s",
        AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE,
    )
    (point,) = metric.histogram.data_points
    expected = on_the_page(monitor, "loadgen_time_to_first_token_seconds")
    assert (point.count, point.sum) == (40, expected.sum)
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == (expected.counts, list(expected.bounds))
    assert (point.start_time_unix_nano, point.time_unix_nano) == (5, 9)
    assert not point.HasField("max")
    assert attributes(point) == LABELS.as_dict()
    examples = {attributes(example)["request_id"]: example.as_double for example in point.exemplars}
    assert examples == {example.request_id: example.value for example in expected.exemplars.values()}


def test_an_exponential_histogram_has_the_native_buckets() -> None:
    """The same number of values between the same bounds; OpenTelemetry numbers a bucket by its lower bound."""
    monitor = monitor_of([answered(number, ttft_ms=1 + number**2) for number in range(40)])
    form = Form(conventions=OF_1_41, operation="chat", start_ns=5, exponential=True)
    (point,) = told(monitor, form)["loadgen.time_to_first_token"].exponential_histogram.data_points
    expected = on_the_page(monitor, "loadgen_time_to_first_token_seconds")
    base = 2 ** (2**-point.scale)
    by_lower = {
        base ** (point.positive.offset + at): count for at, count in enumerate(point.positive.bucket_counts) if count
    }
    assert list(by_lower) == pytest.approx([base ** (upper - 1) for upper in sorted(expected.native)])
    assert list(by_lower.values()) == [expected.native[upper] for upper in sorted(expected.native)]
    assert (point.count, point.zero_count, point.sum) == (40, 0, expected.sum)
    (lag,) = told(monitor_of([]), form)["loadgen.schedule_lag"].exponential_histogram.data_points
    assert (lag.count, list(lag.positive.bucket_counts)) == (0, [])


def test_counters_and_gauges() -> None:
    """What only grows says so; labels are those of the page."""
    found = told(monitor_of([answered(0), failed(1)]))
    requests = found["loadgen.requests"].sum
    assert requests.is_monotonic
    assert requests.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    by_outcome = {attributes(point)["outcome"]: point.as_int for point in requests.data_points}
    assert by_outcome == {"completed": 1, "failed": 1, "cancelled": 0, "dropped": 0}
    (in_flight,) = found["loadgen.requests_in_flight"].gauge.data_points
    assert in_flight.as_int == 0


def test_the_conventions_of_1_41() -> None:
    """Durations and tokens by the names that tools know, with what the conventions demand beside our labels."""
    found = told(monitor_of([answered(0, tokens=6)]))
    (duration,) = found["gen_ai.client.operation.duration"].histogram.data_points
    demanded = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": LABELS.model,
    }
    assert attributes(duration) == demanded | LABELS.as_dict()
    assert list(duration.bucket_counts) == list(
        found["loadgen.request_duration"].histogram.data_points[0].bucket_counts
    )
    usage = found["gen_ai.client.token.usage"]
    assert usage.unit == "{token}"
    by_type = {attributes(point)["gen_ai.token.type"]: point.sum for point in usage.histogram.data_points}
    assert by_type["output"] == 6
    assert not any(name.startswith("gen_ai.client.inference") for name in found)


def test_the_latest_conventions() -> None:
    """The same by the names that took their place, and none of the older ones."""
    form = Form(conventions=LATEST, operation="text_completion", start_ns=5)
    found = told(monitor_of([answered(0, tokens=6)]), form)
    (duration,) = found["gen_ai.client.inference.duration"].histogram.data_points
    assert (duration.count, attributes(duration)["gen_ai.operation.name"]) == (1, "text_completion")
    (used,) = found["gen_ai.client.inference.usage.output_tokens"].sum.data_points
    (each,) = found["gen_ai.client.inference.operation.output_tokens"].histogram.data_points
    assert (used.as_int, each.sum, each.count) == (6, 6, 1)
    assert not any(name.startswith(("gen_ai.client.operation", "gen_ai.client.token")) for name in found)


def test_what_was_not_counted_is_not_reported_by_conventional_names() -> None:
    """A server that tells no tokens has no histogram of them, and nothing has a duration before anything is over."""
    assert not [name for name in told(monitor_of([])) if name.startswith("gen_ai.")]


@pytest.mark.parametrize(
    ("opt_in", "expected"),
    [
        ("", OF_1_41),
        ("http,database", OF_1_41),
        ("gen_ai_latest_experimental", LATEST),
        ("http, gen_ai_latest_experimental", LATEST),
    ],
)
def test_which_names_are_used(opt_in: str, expected: object) -> None:
    """OpenTelemetry's own switch decides."""
    assert conventions(opt_in) is expected


def test_pushes_have_the_series_of_the_page_whatever_a_run_does() -> None:
    """10,000 requests come to as many points as 10."""

    def points(requests: int) -> int:
        found = told(monitor_of(answered(number, ttft_ms=1 + number % 977) for number in range(requests)))
        kinds = (metric.WhichOneof("data") for metric in found.values())
        return sum(
            len(getattr(metric, str(kind)).data_points) for metric, kind in zip(found.values(), kinds, strict=True)
        )

    assert points(10_000) == points(10)


def test_the_document_has_every_name() -> None:
    """Both generations in its table, row by row."""
    rows = set(re.findall(r"^\| `(loadgen_\w+)` \| (.*?) \| (.*?) \|$", DOCUMENT, re.MULTILINE))
    expected = set()
    for metric in itertools.chain(OF_1_41, (name for name in LATEST if name not in OF_1_41)):
        older, newer = OF_1_41.get(metric), LATEST.get(metric)
        kind = "".join(f", `{key}={text}`" for key, text in older.attributes.items()) if older else ""
        expected.add((metric, f"`{older.name}`{kind}" if older else "–", f"`{newer.name}`" if newer else "–"))
    assert expected <= rows
