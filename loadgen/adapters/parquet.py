"""Records, or runs, as a Parquet file for data frames: one typed column a field, lists as list columns, zstd.

Needs pyarrow, which the `parquet` extra installs.
"""

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from loadgen.core.errors import ConfigError, StoreError
from loadgen.core.metrics.summary import SUMMARY_SCHEMA, Summary
from loadgen.core.record import RECORD_SCHEMA, RequestRecord
from loadgen.report.columns import NO_PLACES, Column, Place, Places, run_columns, text_of

BATCH_ROWS = 1024


def write_records(path: Path, records: Iterable[tuple[Place, RequestRecord]], places: Places = NO_PLACES) -> int:
    """Writes records, each behind the place of its run, and counts them.

    At most `BATCH_ROWS` records are in memory. The file appears whole or not at all. Raises ConfigError without
    pyarrow, StoreError when the file cannot be written.
    """
    pa = _pyarrow()
    columns = [*(pa.field(name, _type(pa, kind)) for name, kind in places.items()), *_fields(pa, RequestRecord)]
    schema = pa.schema(columns, metadata={"schema": RECORD_SCHEMA})
    rows = ({**place, **_row(record)} for place, record in records)
    return _write(path, schema, rows)


def write_runs(path: Path, runs: Sequence[tuple[Place, Summary]], places: Places = NO_PLACES) -> int:
    """Writes a row a run: its place, then its summary, in the columns of the CSV; counts them. Raises as above."""
    pa = _pyarrow()
    columns = run_columns(runs, places)
    schema = pa.schema(
        [pa.field(column.name, _type(pa, column.kind)) for column in columns], metadata={"schema": SUMMARY_SCHEMA}
    )
    return _write(path, schema, ({column.name: _value(column, run) for column in columns} for run in runs))


def _value(column: Column, run: tuple[Place, Summary]) -> Any:
    value = column.pick(run)
    return text_of(value) if column.kind is str and value is not None else value


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as fault:
        raise ConfigError("the parquet format needs pyarrow, which is missing: pip install pyarrow") from fault
    return pyarrow


def _write(path: Path, schema: Any, rows: Iterable[Mapping[str, Any]]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    draft = path.with_name(f".{path.name}.part")
    written = 0
    try:
        with pq.ParquetWriter(draft, schema, compression="zstd") as writer:
            for batch in _batches(rows):
                writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
                written += len(batch)
        draft.replace(path)
    except OSError as fault:
        raise StoreError(f"{path}: cannot be written: {fault.strerror or fault}") from fault
    finally:
        draft.unlink(missing_ok=True)
    return written


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    source = iter(rows)
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
