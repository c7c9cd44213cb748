"""Families of the page as OpenTelemetry's metrics: counts and buckets go over, and nothing is observed again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Buckets,
    DataT,
    ExponentialHistogram,
    ExponentialHistogramDataPoint,
    Gauge,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as ExplicitHistogram

from loadgen.adapters.otlp.families import Family
from loadgen.adapters.otlp.names import Name, own_name
from loadgen.core.stats.histogram import NATIVE_SCHEMA, Histogram
from loadgen.core.units import nanoseconds

_CUMULATIVE = AggregationTemporality.CUMULATIVE
_Point = tuple[Mapping[str, str], float | Histogram]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How families are put: by which conventions, for which operation of theirs, with which kind of histogram.

    `start_ns` is the wall time from which totals count.
    """

    conventions: Mapping[str, Name]
    operation: str
    start_ns: int
    exponential: bool = False


def metrics(families: Iterable[Family], form: Form, now_ns: int) -> list[Metric]:
    """All families by their own names, and those that the GenAI conventions have names for; points are of `now_ns`."""
    told: dict[str, tuple[Name, Family, list[_Point]]] = {}
    for family in families:
        for name, points in _both(family, form):
            told.setdefault(name.name, (name, family, []))[2].extend(points)
    return [_metric(*each, form, now_ns) for each in told.values()]


def _both(family: Family, form: Form) -> Iterable[tuple[Name, list[_Point]]]:
    yield own_name(family.name), [(series.labels, series.value) for series in family.series]
    name = form.conventions.get(family.name)
    if name is not None:
        # What was not counted is not to be reported by these names.
        told = (series for series in family.series if not _is_nothing(series.value))
        points: list[_Point] = [(_gen_ai(series.labels, form, name), series.value) for series in told]
        if points:
            yield name, points


def _gen_ai(labels: Mapping[str, str], form: Form, name: Name) -> dict[str, str]:
    """The labels of the page, and what the conventions demand: every server is spoken to in OpenAI's way."""
    return {
        "gen_ai.operation.name": form.operation,
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": labels["model"],
        **name.attributes,
        **labels,
    }


def _is_nothing(value: float | Histogram) -> bool:
    return value.count == 0 if isinstance(value, Histogram) else value == 0


def _metric(name: Name, family: Family, points: Sequence[_Point], form: Form, now_ns: int) -> Metric:
    data: DataT
    match family.kind:
        case "histogram":
            data = _histograms([(labels, v) for labels, v in points if isinstance(v, Histogram)], form, now_ns)
        case "counter":
            data = Sum(_numbers(points, form, now_ns), _CUMULATIVE, is_monotonic=True)
        case "gauge":
            data = Gauge(_numbers(points, form, now_ns))
    return Metric(name=name.name, description=family.help, unit=name.unit, data=data)


def _numbers(points: Sequence[_Point], form: Form, now_ns: int) -> list[NumberDataPoint]:
    return [
        NumberDataPoint(attributes=labels, start_time_unix_nano=form.start_ns, time_unix_nano=now_ns, value=value)
        for labels, value in points
        if not isinstance(value, Histogram)
    ]


def _histograms(
    points: Sequence[tuple[Mapping[str, str], Histogram]], form: Form, now_ns: int
) -> ExplicitHistogram | ExponentialHistogram:
    if form.exponential:
        return ExponentialHistogram([_exponential(*point, form, now_ns) for point in points], _CUMULATIVE)
    return ExplicitHistogram([_explicit(*point, form, now_ns) for point in points], _CUMULATIVE)


def _explicit(labels: Mapping[str, str], histogram: Histogram, form: Form, now_ns: int) -> HistogramDataPoint:
    return HistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=form.start_ns,
        time_unix_nano=now_ns,
        count=histogram.count,
        sum=histogram.sum,
        bucket_counts=histogram.counts,
        explicit_bounds=histogram.bounds,
        min=None,  # type: ignore[arg-type]
        max=None,  # type: ignore[arg-type]
        exemplars=_exemplars(histogram),
    )


def _exponential(
    labels: Mapping[str, str], histogram: Histogram, form: Form, now_ns: int
) -> ExponentialHistogramDataPoint:
    """The native buckets: of the same bases, and numbered by their lower bounds instead of their upper ones."""
    native = histogram.native
    first, last = (min(native), max(native)) if native else (1, 0)
    return ExponentialHistogramDataPoint(
        attributes=labels,
        start_time_unix_nano=form.start_ns,
        time_unix_nano=now_ns,
        count=histogram.count,
        sum=histogram.sum,
        scale=NATIVE_SCHEMA,
        zero_count=histogram.zeros,
        positive=Buckets(offset=first - 1, bucket_counts=[native.get(at, 0) for at in range(first, last + 1)]),
        negative=Buckets(offset=0, bucket_counts=[]),
        flags=0,
        min=None,  # type: ignore[arg-type]
        max=None,  # type: ignore[arg-type]
        exemplars=_exemplars(histogram),
    )


def _exemplars(histogram: Histogram) -> list[Exemplar]:
    return [
        Exemplar({"request_id": example.request_id}, example.value, nanoseconds(example.unix_s))
        for example in histogram.exemplars.values()
    ]
