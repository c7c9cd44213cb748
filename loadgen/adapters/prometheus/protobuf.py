"""Families as delimited `io.prometheus.client.MetricFamily` messages: the form in which native histograms are scraped.

The numbers of fields and types are those of Prometheus' `metrics.proto`. Histograms are native and classic at once;
which of the two is stored is up to who scrapes.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from loadgen.adapters.prometheus.series import Family, Kind, Series
from loadgen.core.stats.histogram import NATIVE_SCHEMA, Exemplar, Histogram

PROTOBUF_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_TYPES: Mapping[Kind, int] = {"counter": 0, "gauge": 1, "histogram": 4}
_NUMBERS: Mapping[Kind, int] = {"gauge": 2, "counter": 3}
_ZERO_THRESHOLD = 2.0**-128
_NS_PER_S = 10**9


def protobuf(families: Iterable[Family]) -> bytes:
    """The page, one message a family, each after its length."""
    return b"".join(_varint(len(message)) + message for message in map(_family, families))


def _family(family: Family) -> bytes:
    metrics = (_message(4, _metric(family.kind, series)) for series in family.series)
    unit = _text(5, family.unit) if family.unit else b""
    return _text(1, family.name) + _text(2, family.help) + _integer(3, _TYPES[family.kind]) + b"".join(metrics) + unit


def _metric(kind: Kind, series: Series) -> bytes:
    labels = b"".join(_message(1, _label(name, value)) for name, value in series.labels.items())
    if isinstance(series.value, Histogram):
        return labels + _message(7, _histogram(series.value))
    return labels + _message(_NUMBERS[kind], _double(1, series.value))


def _histogram(histogram: Histogram) -> bytes:
    parts = [_integer(1, histogram.count), _double(2, histogram.sum)]
    cumulative = accumulate(histogram.counts)
    for place, (bound, count) in enumerate(zip(histogram.bounds, cumulative, strict=False)):
        parts.append(_message(3, _integer(1, count) + _double(2, bound) + _exemplar(histogram.exemplars.get(place))))
    above = histogram.exemplars.get(len(histogram.bounds))
    if above is not None:
        parts.append(_message(3, _integer(1, histogram.count) + _double(2, float("inf")) + _exemplar(above)))
    parts += [
        _integer(5, _zigzag(NATIVE_SCHEMA)),
        _double(6, _ZERO_THRESHOLD),
        _integer(7, histogram.zeros),
    ]
    spans, deltas = [], []
    expected, before = 0, 0
    for first, counts in _runs(histogram.native):
        spans.append(_message(12, _integer(1, _zigzag(first - expected)) + _integer(2, len(counts))))
        expected = first + len(counts)
        for count in counts:
            deltas.append(_varint(_zigzag(count - before)))
            before = count
    # A span of no length tells an empty native histogram from a classic one.
    parts += spans or [_message(12, _integer(1, 0) + _integer(2, 0))]
    return b"".join(parts) + (_message(13, b"".join(deltas)) if deltas else b"")


def _runs(native: Mapping[int, int]) -> Iterator[tuple[int, list[int]]]:
    """Neighbouring buckets together, with the index of the first."""
    first, counts = 0, list[int]()
    for index in sorted(native):
        if counts and index == first + len(counts):
            counts.append(native[index])
            continue
        if counts:
            yield first, counts
        first, counts = index, [native[index]]
    if counts:
        yield first, counts


def _exemplar(exemplar: Exemplar | None) -> bytes:
    if exemplar is None:
        return b""
    whole, part = divmod(round(exemplar.unix_s * _NS_PER_S), _NS_PER_S)
    stamp = _integer(1, whole) + _integer(2, part)
    return _message(
        3, _message(1, _label("request_id", exemplar.request_id)) + _double(2, exemplar.value) + _message(3, stamp)
    )


def _label(name: str, value: str) -> bytes:
    return _text(1, name) + _text(2, value)


def _zigzag(value: int) -> int:
    """Signed as unsigned: 0, -1, 1, -2, … as 0, 1, 2, 3, …"""
    return value * 2 if value >= 0 else -value * 2 - 1


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _integer(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<d", value)


def _message(field: int, body: bytes) -> bytes:
    return _key(field, _LENGTH) + _varint(len(body)) + body


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())
