"""`records.jsonl.zst`: one record a line, in the order in which requests ended."""

from pathlib import Path

from loadgen.adapters.store.files import Scrubber
from loadgen.adapters.store.lines import PENDING_LIMIT_BYTES, LineReader, LineWriter
from loadgen.core.record import RECORD_SCHEMA, RequestRecord, impossible

_RECORD_BYTES = 2_000
_EVENT_BYTES = 80


class RecordWriter(LineWriter[RequestRecord]):
    """The record sink of a run."""

    def __init__(self, path: Path, *, scrubber: Scrubber | None = None, limit_bytes: int = PENDING_LIMIT_BYTES) -> None:
        """Creates the file. Raises StoreError when it cannot be created or is there already."""
        super().__init__(path, kind="record", size_of=_bytes, scrubber=scrubber, limit_bytes=limit_bytes)


class RecordReader(LineReader[RequestRecord]):
    """Reads a record file as a stream. A record with numbers that no run can have had is a StoreError."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, RequestRecord, RECORD_SCHEMA, fault_of=impossible)


def _bytes(record: RequestRecord) -> int:
    return _RECORD_BYTES + _EVENT_BYTES * len(record.event_ns) + 4 * len(record.text or "")
