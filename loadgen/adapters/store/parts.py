"""Records of a run of several processes: `records.0.jsonl.zst` and so on, until they are joined."""

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import zstandard

from loadgen.adapters.store.files import Scrubber, whole_file
from loadgen.adapters.store.records import RecordReader

_SUFFIX = ".jsonl.zst"
_NUMBER = re.compile(r"\.(\d{1,4})\.jsonl\.zst")


def part_of(records: Path, index: int) -> Path:
    """The file of one process."""
    return records.with_name(f"{records.name.removesuffix(_SUFFIX)}.{index}{_SUFFIX}")


def parts_of(records: Path) -> list[Path]:
    """The files that are there, by number."""
    stem = records.name.removesuffix(_SUFFIX)
    found = [
        (int(match[1]), path)
        for path in records.parent.glob(f"{stem}.*{_SUFFIX}")
        if (match := _NUMBER.fullmatch(path.name.removeprefix(stem)))
    ]
    return [path for _, path in sorted(found)]


def join(records: Path, *, cut: Collection[Path]) -> dict[Path, int]:
    """Makes one file of all parts and removes them; for each of those that were cut the number of records in it.

    After a crash at any instant all parts are there or the whole is. Raises StoreError when that cannot be written, or
    for a cut part that holds something else than records.
    """
    parts = parts_of(records)
    counts = {}
    with whole_file(records) as whole:
        for part in parts:
            if part in cut:
                counts[part] = _rewrite(part, whole)
            else:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, whole)  # a frame may follow another as it is
    for part in parts:
        part.unlink()
    return counts


def _rewrite(part: Path, whole: BinaryIO) -> int:
    """Writes the records that a cut file still holds as a frame with an end; how many these are."""
    scrubber, count = Scrubber(), 0
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
    for record in RecordReader(part):
        whole.write(compressor.compress(scrubber.encode(record) + b"\n"))
        count += 1
    whole.write(compressor.flush())
    return count
