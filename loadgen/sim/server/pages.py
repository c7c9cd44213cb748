"""Pages of the simulated servers: JSON, and metrics in Prometheus' text form."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import accumulate

from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest

from loadgen.sim.server.dialect import Reply
from loadgen.sim.server.events import encode


def json_page(value: object) -> Reply:
    """A page of JSON."""
    return Reply(200, "application/json", encode(value))


class Buckets:
    """A histogram: how many values were at most each of its ascending bounds, how many were larger, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, *bounds: float) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Counts a value, several times over if told."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times


class MetricsPage:
    """One scrape, made when it is asked for. All samples have `labels`; a value of None and an empty histogram have
    none, as a metric with labels has none before its first observation.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = dict(labels)
        self._metrics: dict[str, Metric] = {}

    def counter(self, name: str, says: str, value: float | None, **labels: str) -> None:
        """A sample of a counter, whose name ends in `_total`."""
        if value is not None:
            self._metric(name.removesuffix("_total"), says, "counter").add_sample(name, self._labels | labels, value)

    def gauge(self, name: str, says: str, value: float | None, **labels: str) -> None:
        """A sample of a gauge."""
        if value is not None:
            self._metric(name, says, "gauge").add_sample(name, self._labels | labels, value)

    def histogram(self, name: str, says: str, buckets: Buckets, **labels: str) -> None:
        """The samples of a histogram."""
        if not any(buckets.counts):
            return
        metric, labels = self._metric(name, says, "histogram"), self._labels | labels
        counted = 0
        for bound, counted in zip((*map(float, buckets.bounds), "+Inf"), accumulate(buckets.counts), strict=True):
            metric.add_sample(f"{name}_bucket", labels | {"le": str(bound)}, counted)
        metric.add_sample(f"{name}_count", labels, counted)
        metric.add_sample(f"{name}_sum", labels, buckets.sum)

    def collect(self) -> Iterable[Metric]:
        """The metrics, in the order in which they came."""
        return self._metrics.values()

    def reply(self) -> Reply:
        """The page."""
        return Reply(200, CONTENT_TYPE_LATEST, generate_latest(self))

    def _metric(self, name: str, says: str, kind: str) -> Metric:
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = Metric(name, says, kind)
        return metric
