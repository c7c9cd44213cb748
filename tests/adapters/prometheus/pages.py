"""Pages of a monitor that was given records, and what their bytes say."""

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from loadgen.adapters.prometheus.families import Labels
from loadgen.adapters.prometheus.monitor import Monitor
from loadgen.core.record import RequestRecord
from loadgen.core.run import Load, LoadMode

LABELS = Labels(server="vllm", method="eagle3", model="m", workload="synthetic")
LOAD = Load(mode=LoadMode.CONCURRENCY, concurrency=4)


class Forgetful:
    """A sink."""

    def put(self, record: RequestRecord) -> None:
        """Keeps nothing."""


def monitor_of(records: Iterable[RequestRecord], labels: Labels = LABELS, load: Load = LOAD) -> Monitor:
    """A monitor within a run that these records came from."""
    monitor = Monitor()
    sink = monitor.begin(labels, load, origin_unix_ns=0).beside(Forgetful())
    for record in records:
        sink.put(record)
    return monitor


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Field numbers and values of a protobuf message, as its wire format says; what is nested stays bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        match key & 7:
            case 0:
                value, at = varint(message, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, struct.unpack_from("<d", message, at)[0]
                at += 8
            case 2:
                length, at = varint(message, at)
                yield key >> 3, message[at : at + length]
                at += length
            case other:
                raise AssertionError(other)


def varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def messages(page: bytes) -> Iterator[bytes]:
    """The delimited messages of a page."""
    at = 0
    while at < len(page):
        length, at = varint(page, at)
        yield page[at : at + length]
        at += length


def signed(value: int) -> int:
    """What a zigzag number stands for."""
    return value >> 1 if value % 2 == 0 else -(value + 1 >> 1)
