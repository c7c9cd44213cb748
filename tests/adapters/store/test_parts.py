"""Records of several processes: read as they lie, joined into one file."""

from pathlib import Path

import pytest

from loadgen.adapters.store.lines import LineReader
from loadgen.adapters.store.records import RecordWriter
from loadgen.adapters.store.run_folder import RECORDS, RunFolder
from loadgen.core.errors import StoreError
from loadgen.core.record import RECORD_SCHEMA, RequestRecord


def write(path: Path, records: list[RequestRecord]) -> None:
    writer = RecordWriter(path)
    for each in records:
        writer.put(each)
    writer.close()


@pytest.fixture
def folder(tmp_path, record):
    """Records 0 to 3 in part 0, 4 to 6 in part 10, none in part 2."""
    folder = RunFolder.create(tmp_path, "r1")
    write(folder.part_path(0), [record(seq) for seq in range(4)])
    write(folder.part_path(10), [record(seq) for seq in range(4, 7)])
    write(folder.part_path(2), [])
    return folder


def names(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in folder.path.iterdir())


def test_parts_are_read_as_they_lie(folder, record):
    """As those of a run that died before they were joined: all of them, by number."""
    assert list(folder.records()) == [record(seq) for seq in range(7)]
    assert not folder.truncated
    folder.part_path(0).write_bytes(folder.part_path(0).read_bytes()[:-4])
    assert len(list(folder.records())) == 7
    assert folder.truncated


def test_parts_become_one_file(folder, record):
    """The same records, in a file like any other, and nothing else is left."""
    assert folder.join_parts() == {}
    assert names(folder) == [RECORDS]
    assert list(folder.records()) == [record(seq) for seq in range(7)]
    assert not folder.truncated
    assert list(LineReader(folder.path / RECORDS, RequestRecord, RECORD_SCHEMA)) == list(folder.records())


@pytest.mark.parametrize("kept", [0, 1, 40, -1])
def test_what_a_part_lacks_does_not_take_the_others_along(folder, record, kept):
    """A worker died while it wrote: its whole records are there and counted, those of the part behind it as well."""
    part = folder.part_path(0)
    part.write_bytes(part.read_bytes()[:kept])
    counts = folder.join_parts(cut=(0,))
    found = list(folder.records())
    assert names(folder) == [RECORDS]
    assert not folder.truncated
    assert found[-3:] == [record(seq) for seq in range(4, 7)]
    assert found[:-3] == [record(seq) for seq in range(4)][: counts[0]]
    assert counts[0] == (4 if kept == -1 else 0)


def test_a_worker_that_never_wrote_has_no_part(folder):
    """It was gone before its file was made; there is nothing to count."""
    folder.part_path(10).unlink()
    assert folder.join_parts(cut=(10,)) == {}
    assert len(list(folder.records())) == 4


def test_what_cannot_be_joined_stays(folder, record):
    """A part that was said to be cut and holds something else: the error names it, and nothing is removed."""
    folder.part_path(2).write_bytes(b"no records")
    with pytest.raises(StoreError, match=r"records\.2\.jsonl\.zst: expected zstd"):
        folder.join_parts(cut=(2,))
    assert names(folder) == ["records.0.jsonl.zst", "records.10.jsonl.zst", "records.2.jsonl.zst"]


def test_the_whole_counts_where_parts_are_left_beside_it(folder, record):
    """The machine went down after joining and before all were removed: no request has two records or none."""
    left = folder.part_path(10).read_bytes()
    folder.join_parts()
    folder.part_path(10).write_bytes(left)
    assert list(folder.records()) == [record(seq) for seq in range(7)]
