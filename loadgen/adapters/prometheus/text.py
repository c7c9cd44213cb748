"""Families as text: Prometheus' own form, and OpenMetrics with exemplars and, where series have them, time stamps."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector

from loadgen.adapters.prometheus.series import Family, Series
from loadgen.core.stats.histogram import Histogram

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_EOF = b"# EOF\n"


def text(families: Iterable[Family]) -> bytes:
    """The page in Prometheus' text form, 0.0.4."""
    return generate_latest(_Page(families))


def openmetrics(families: Iterable[Family]) -> bytes:
    """The page as OpenMetrics 1.0."""
    page: bytes = generate_openmetrics(_Page(families))  # type: ignore[no-untyped-call]
    return page


def openmetrics_pieces(families: Iterable[Family]) -> Iterator[str]:
    """The same a family at a time, for long ones."""
    for family in families:
        yield openmetrics((family,)).removesuffix(_EOF).decode()
    yield _EOF.decode()


class _Page(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return map(_metric, self._families)


def _metric(family: Family) -> Metric:
    names = list(family.series[0].labels)
    match family.kind:
        case "histogram":
            metric = HistogramMetricFamily(family.name, family.help, labels=names, unit=family.unit)
            for series in family.series:
                _add_histogram(metric, series)
            return metric
        case "counter":
            numbers: Metric = CounterMetricFamily(family.name, family.help, labels=names, unit=family.unit)
        case "gauge":
            numbers = GaugeMetricFamily(family.name, family.help, labels=names, unit=family.unit)
    for series in family.series:
        name = family.name
        numbers.add_sample(name, dict(series.labels), _number(series), timestamp=series.unix_s)
    return numbers


def _number(series: Series) -> float:
    assert not isinstance(series.value, Histogram)
    return series.value


def _add_histogram(metric: HistogramMetricFamily, series: Series) -> None:
    histogram = series.value
    assert isinstance(histogram, Histogram)
    metric.add_metric(list(series.labels.values()), _buckets(histogram), histogram.sum, timestamp=series.unix_s)


def _buckets(histogram: Histogram) -> Sequence[tuple[str, float] | tuple[str, float, Exemplar]]:
    bounds = (*histogram.bounds, math.inf)
    buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    for place, (bound, count) in enumerate(zip(bounds, accumulate(histogram.counts), strict=True)):
        bucket = ("+Inf" if math.isinf(bound) else repr(bound), float(count))
        marked = histogram.exemplars.get(place)
        if marked is None:
            buckets.append(bucket)
        else:
            buckets.append((*bucket, Exemplar({"request_id": marked.request_id}, marked.value, marked.unix_s)))
    return buckets
