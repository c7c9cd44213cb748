"""Records as Parquet."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loadgen.adapters.parquet import BATCH_ROWS, write_records
from loadgen.core.errors import StoreError
from loadgen.core.record import (
    RECORD_SCHEMA,
    Failure,
    FailureKind,
    Outcome,
    RequestRecord,
    RequestSpeculation,
    TokenSource,
)
from loadgen.core.request import Phase
from loadgen.report.columns import Place

LEVEL = {"level": float}
FULL = RequestRecord(
    seq=1,
    request_id="r-1",
    phase=Phase.MEASURE,
    due_ns=5,
    sent_ns=7,
    event_ns=(10, 20, 30),
    event_tokens=(1, 3, 2),
    output_tokens=6,
    output_tokens_from=TokenSource.SERVER,
    outcome=Outcome.COMPLETED,
    speculation=RequestSpeculation(steps=2, histogram=(0, 1, 1)),
    streamed=True,
    notes=("no_done",),
)
EMPTY = RequestRecord(
    seq=2,
    request_id="r-2",
    phase=Phase.MEASURE,
    outcome=Outcome.FAILED,
    failure=Failure(kind=FailureKind.TLS, message="語 \u2029"),
)


def test_a_record_comes_back(tmp_path: Path) -> None:
    """Written and read again, records are what they were, nested parts and lists included."""
    path = tmp_path / "records.parquet"
    assert write_records(path, [({}, FULL), ({}, EMPTY)], LEVEL) == 2
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        assert row.pop("level") is None
    assert msgspec.convert(rows, list[RequestRecord]) == [FULL, EMPTY]


def test_columns_are_typed_and_follow_the_record(tmp_path: Path) -> None:
    """A column a field, of its own type even when a whole file has no value, zstd, and the schema's name."""
    path = tmp_path / "records.parquet"
    write_records(path, [({"level": 8.0}, EMPTY)], LEVEL)
    schema = pq.read_schema(path)
    assert schema.names == ["level", *(field.name for field in fields(RequestRecord))]
    assert schema.field("sent_ns").type == pa.int64()
    assert schema.field("event_ns").type == pa.list_(pa.int64())
    assert schema.field("streamed").type == pa.bool_()
    assert schema.field("outcome").type == pa.string()
    assert pa.types.is_struct(schema.field("failure").type)
    assert schema.metadata[b"schema"] == RECORD_SCHEMA.encode()
    assert pq.ParquetFile(path).metadata.row_group(0).column(1).compression == "ZSTD"
    assert pq.read_table(path)["level"].to_pylist() == [8.0]


def test_records_are_written_in_batches(tmp_path: Path) -> None:
    """Never more than a batch is held: when the writer asks for the next one, the earlier ones are on disk."""
    path = tmp_path / "records.parquet"

    def many() -> Iterator[tuple[Place, RequestRecord]]:
        for _ in range(3 * BATCH_ROWS + 7):
            yield {}, FULL

    assert write_records(path, many()) == 3 * BATCH_ROWS + 7
    found = pq.ParquetFile(path).metadata
    assert found.num_rows == 3 * BATCH_ROWS + 7
    assert found.num_row_groups == 4


def test_no_record_is_an_empty_table(tmp_path: Path) -> None:
    """A run without requests gives a file with columns and no rows."""
    path = tmp_path / "records.parquet"
    assert write_records(path, []) == 0
    assert pq.read_table(path).num_rows == 0


def test_a_failure_leaves_no_half_file(tmp_path: Path) -> None:
    """When records cannot be read to the end, the old file stays and no draft is left."""
    path = tmp_path / "records.parquet"
    path.write_bytes(b"old")

    def breaking() -> Iterator[tuple[Place, RequestRecord]]:
        yield {}, FULL
        raise StoreError("cut")

    with pytest.raises(StoreError, match="cut"):
        write_records(path, breaking())
    assert [entry.name for entry in tmp_path.iterdir()] == ["records.parquet"]
    assert path.read_bytes() == b"old"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The message has the path and the reason."""
    with pytest.raises(StoreError, match=r"missing/records\.parquet: cannot be written: "):
        write_records(tmp_path / "missing" / "records.parquet", [({}, FULL)])


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path) -> None:
    """In a Python that has no pyarrow the user learns which extra brings it."""
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path\n"
        "from loadgen.adapters.parquet import write_records\n"
        "from loadgen.core.errors import ConfigError\n"
        "try: write_records(Path(sys.argv[1]), [])\n"
        "except ConfigError as fault: print(fault)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True, check=True)
    assert "pip install pyarrow" in done.stdout
