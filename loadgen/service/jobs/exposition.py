"""Metrics on their way from the process that measures to the page of the service."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from loadgen.adapters.prometheus.families import Family, Series
from loadgen.core.stats.histogram import Exemplar, Histogram

Encoded = list[dict[str, Any]]


def encode_families(families: Iterable[Family]) -> Encoded:
    """As JSON can hold it."""
    return [
        {
            "name": family.name,
            "kind": family.kind,
            "help": family.help,
            "unit": family.unit,
            "series": [[dict(series.labels), _encode(series.value)] for series in family.series],
        }
        for family in families
    ]


def decode_families(encoded: Encoded) -> list[Family]:
    """What `encode_families` was given."""
    return [
        Family(
            name=family["name"],
            kind=family["kind"],
            help=family["help"],
            unit=family["unit"],
            series=tuple(Series(labels=labels, value=_decode(value)) for labels, value in family["series"]),
        )
        for family in encoded
    ]


def merged(sources: Iterable[Sequence[Family]]) -> list[Family]:
    """One page of several: series of one name together; of the same labels the first one's."""
    heads: dict[str, Family] = {}
    found: dict[str, dict[tuple[tuple[str, str], ...], Series]] = {}
    for family in (family for source in sources for family in source):
        heads.setdefault(family.name, family)
        taken = found.setdefault(family.name, {})
        for series in family.series:
            taken.setdefault(_identity(series.labels), series)
    return [
        Family(name=name, kind=head.kind, help=head.help, unit=head.unit, series=tuple(found[name].values()))
        for name, head in heads.items()
    ]


def _identity(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _encode(value: float | Histogram) -> Any:
    if not isinstance(value, Histogram):
        return value
    return {
        "bounds": value.bounds,
        "counts": value.counts,
        "native": {str(place): count for place, count in value.native.items()},
        "zeros": value.zeros,
        "sum": value.sum,
        "exemplars": {
            str(place): [example.value, example.request_id, example.unix_s]
            for place, example in value.exemplars.items()
        },
    }


def _decode(value: Any) -> float | Histogram:
    if not isinstance(value, dict):
        return float(value)
    histogram = Histogram(value["bounds"])
    histogram.counts, histogram.zeros, histogram.sum = list(value["counts"]), value["zeros"], value["sum"]
    histogram.native = {int(place): count for place, count in value["native"].items()}
    histogram.exemplars = {
        int(place): Exemplar(value=number, request_id=name, unix_s=unix_s)
        for place, (number, name, unix_s) in value["exemplars"].items()
    }
    return histogram
