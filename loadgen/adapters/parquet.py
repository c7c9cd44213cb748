"""Records as a Parquet file, for data frames: one typed column a field, lists as list columns, zstd.

Needs pyarrow, which the `parquet` extra installs.
"""

import types
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from loadgen.core.errors import ConfigError, StoreError
from loadgen.core.record import RECORD_SCHEMA, RequestRecord

BATCH_ROWS = 1024


def write_records(path: Path, records: Iterable[tuple[float | None, RequestRecord]]) -> int:
    """Writes records, each with the level of the ladder it belongs to (None for a single run), and counts them.

    At most `BATCH_ROWS` records are in memory. The file appears whole or not at all. Raises ConfigError without
    pyarrow, StoreError when the file cannot be written.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as fault:
        raise ConfigError("the parquet format needs pyarrow, which is missing: pip install pyarrow") from fault
    columns = [pa.field("level", pa.float64()), *(_fields(pa, RequestRecord))]
    schema = pa.schema(columns, metadata={"schema": RECORD_SCHEMA})
    draft = path.with_name(f".{path.name}.part")
    rows = 0
    try:
        with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for batch in _batches(records):
                table = [{"level": level, **_row(record)} for level, record in batch]
                writer.write_batch(pa.RecordBatch.from_pylist(table, schema=schema))
                rows += len(batch)
        draft.replace(path)
    except OSError as fault:
        raise StoreError(f"{path}: cannot be written: {fault.strerror or fault}") from fault
    finally:
        draft.unlink(missing_ok=True)
    return rows


def _batches(
    records: Iterable[tuple[float | None, RequestRecord]],
) -> Iterator[list[tuple[float | None, RequestRecord]]]:
    source = iter(records)
    while batch := list(islice(source, BATCH_ROWS)):
        yield batch


def _row(value: Any) -> dict[str, Any]:
    """A record as columns; nested values become structs."""
    cells = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: _row(cell) if is_dataclass(cell) else cell for name, cell in cells}


def _fields(pa: Any, of: type) -> list[Any]:
    """The Arrow fields of a record type, so that a new field is a new column."""
    hints = get_type_hints(of)
    return [pa.field(field.name, _type(pa, hints[field.name])) for field in fields(of)]


def _type(pa: Any, hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        return pa.list_(_type(pa, get_args(hint)[0]))
    if is_dataclass(hint) and isinstance(hint, type):
        return pa.struct(_fields(pa, hint))
    if issubclass(hint, str):
        return pa.string()
    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}[hint]
