"""Records on disk: appended, cut, killed, refused."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.adapters.store.files import Scrubber
from loadgen.adapters.store.records import RecordReader, RecordWriter
from loadgen.core.errors import StoreError
from loadgen.core.record import (
    COUNT_LIMIT,
    INSTANT_LIMIT_NS,
    Failure,
    FailureKind,
    Outcome,
    RequestRecord,
    RequestSpeculation,
    TokenSource,
)
from loadgen.core.redaction import REDACTED
from loadgen.core.request import Phase

counts = st.none() | st.integers(min_value=0, max_value=COUNT_LIMIT - 1)
instants = st.none() | st.integers(min_value=1 - INSTANT_LIMIT_NS, max_value=INSTANT_LIMIT_NS - 1)
words = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.lists(st.integers(min_value=0, max_value=COUNT_LIMIT - 1)).map(tuple)
speculations = st.builds(
    RequestSpeculation,
    steps=counts,
    drafted_tokens=counts,
    accepted_tokens=counts,
    histogram=st.none() | numbers,
    max_draft_tokens=counts,
    per_step_accepted=st.none() | numbers,
    per_step_drafted=st.none() | numbers,
)
records = st.builds(
    RequestRecord,
    seq=st.integers(min_value=0, max_value=COUNT_LIMIT - 1),
    request_id=words,
    phase=st.sampled_from(Phase),
    session_id=st.none() | words,
    turn=counts,
    category=st.none() | words,
    **dict.fromkeys(
        [
            "due_ns", "sent_ns", "headers_ns", "first_ns", "first_output_ns", "last_ns", "closed_ns", "cap_wait_ns",
            "connect_ns", "stamp_lag_ns",
        ],
        instants,
    ),
    event_ns=numbers,
    event_tokens=st.none() | numbers,
    **dict.fromkeys(
        [
            "input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "planned_input_tokens",
            "planned_output_tokens", "tool_calls", "http_status",
        ],
        counts,
    ),
    output_tokens_from=st.none() | st.sampled_from(TokenSource),
    finish_reason=st.none() | words,
    outcome=st.sampled_from(Outcome),
    failure=st.none()
    | st.builds(Failure, kind=st.sampled_from(FailureKind), http_status=counts, message=st.none() | words),
    speculation=st.none() | speculations,
    text=st.none() | words,
    streamed=st.none() | st.booleans(),
    resent=st.booleans(),
    stalled_events=st.integers(min_value=0, max_value=COUNT_LIMIT - 1),
    notes=st.lists(words).map(tuple),
)  # fmt: skip


def write(path: Path, stored: list[RequestRecord], **options: object) -> bytes:
    """Writes the records through a real writer and returns the file's bytes."""
    writer = RecordWriter(path, **options)
    for record in stored:
        writer.put(record)
    writer.close()
    return path.read_bytes()


def plain_lines(data: bytes) -> list[bytes]:
    """The whole lines that any other reader of zstd would find."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(data).split(b"\n")[:-1]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(records, max_size=5))
def test_records_round_trip(tmp_path, stored):
    """Any record that the type allows comes back equal: nulls, any Unicode, integers up to their limits."""
    path = tmp_path / os.urandom(8).hex()
    write(path, stored)
    reader = RecordReader(path)
    assert list(reader) == stored
    assert not reader.truncated


def test_every_field_is_a_key_and_absent_is_null(tmp_path, record):
    """A line is strict JSON with one key a field; what is absent is null."""
    (line,) = plain_lines(write(tmp_path / "r", [record(3)]))
    found = json.loads(line, parse_constant=pytest.fail)
    assert list(found) == list(RequestRecord.__dataclass_fields__)
    assert found["due_ns"] is None
    assert found["schema"] == "loadgen.record/1"


def test_a_file_cut_at_any_byte_gives_every_whole_record(tmp_path, record):
    """Whatever a cut leaves is readable, in order and marked as truncated; the more bytes, the more records."""
    stored = [record(i, text="é" * i) for i in range(30)]
    path = tmp_path / "whole"
    writer = RecordWriter(path)
    sizes = []
    for item in stored:  # one block each, so that a cut loses at most the record it is in
        writer.put(item)
        wait_until(lambda: path.stat().st_size > (sizes[-1] if sizes else 0))
        sizes.append(path.stat().st_size)
    writer.close()
    data = path.read_bytes()
    cut_file = tmp_path / "cut"
    for cut in range(len(data)):
        cut_file.write_bytes(data[:cut])
        reader = RecordReader(cut_file)
        found = list(reader)
        assert found == stored[: len(found)]
        assert len(found) >= sum(size <= cut for size in sizes)
        assert reader.truncated


def test_a_cut_inside_a_line_drops_that_line_alone(tmp_path, record):
    """A block border inside a line, as a record larger than a block makes, costs that record and no other."""
    large = record(1, event_ns=tuple(range(10**12, 10**12 + 60_000 * 20_011, 20_011)))
    data = write(tmp_path / "whole", [record(0), large])
    for cut in range(len(data) // 3, len(data) - 1, 997):
        (tmp_path / "cut").write_bytes(data[:cut])
        reader = RecordReader(tmp_path / "cut")
        assert list(reader) == [record(0)]
        assert reader.truncated


def test_frames_one_after_the_other_are_one_file(tmp_path, record):
    """Files of several writers, concatenated, read as one."""
    joined = tmp_path / "joined"
    joined.write_bytes(write(tmp_path / "a", [record(0)]) + write(tmp_path / "b", [record(1)]))
    reader = RecordReader(joined)
    assert list(reader) == [record(0), record(1)]
    assert not reader.truncated


def test_no_file_at_all_is_a_run_killed_before_its_first_record(tmp_path):
    """A missing record file gives no record and says so, without an error."""
    reader = RecordReader(tmp_path / "none")
    assert list(reader) == []
    assert reader.truncated


def test_unknown_keys_and_a_later_minor_version_are_read(tmp_path, record):
    """A file of a later minor version is read, its new keys skipped."""
    (line,) = plain_lines(write(tmp_path / "r", [record(3)]))
    value = json.loads(line) | {"schema": "loadgen.record/1.4", "new_in_1_4": {"a": 1}}
    path = tmp_path / "later"
    path.write_bytes(zstandard.compress(json.dumps(value).encode() + b"\n"))
    assert list(RecordReader(path)) == [record(3, schema="loadgen.record/1.4")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"schema":"other.record/1","seq":1}', "found other.record/1"),
        (b'{"schema":"loadgen.record/2","seq":1}', "newer"),
        (b'{"schema":"loadgen.record/1","seq":"one"}', "seq"),
        (b"[]", "without a schema"),
        (b"{oops", "JSON"),
    ],
)
def test_a_line_that_is_no_record_is_named(tmp_path, record, line, expected):
    """A whole line of something else stops reading with the file, the line and what was expected."""
    good = plain_lines(write(tmp_path / "r", [record(0)]))
    path = tmp_path / "bad"
    path.write_bytes(zstandard.compress(b"\n".join([*good, line, b""])))
    with pytest.raises(StoreError, match=expected) as caught:
        list(RecordReader(path))
    assert f"{path}: line 2: " in str(caught.value)


def test_a_file_that_is_not_zstd_is_named(tmp_path):
    """Plain text under the name of a record file is refused in words."""
    path = tmp_path / "plain"
    path.write_text("{}\n")
    with pytest.raises(StoreError, match="expected zstd-compressed JSON lines"):
        list(RecordReader(path))


def wait_until(condition, timeout_s: float = 20.0) -> None:
    """Returns as soon as the condition holds; fails the test when it never does."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.001)


KILLED = """
import sys
from pathlib import Path
from loadgen.adapters.store.records import RecordWriter
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
writer = RecordWriter(Path(sys.argv[1]))
for seq in range(10**9):
    events = tuple(range(seq, seq + 200 * 20_000_000, 20_000_000))
    writer.put(RequestRecord(seq=seq, request_id=f"r-{seq}", phase=Phase.MEASURE, outcome=Outcome.COMPLETED, event_ns=events))
    print(seq, flush=True)
    if seq >= 300:
        sys.stdin.readline()
"""  # noqa: E501


def test_after_sigkill_every_acknowledged_record_is_there(tmp_path):
    """A process killed with SIGKILL while it writes leaves every record that it had put a moment before."""
    path = tmp_path / "records"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as child:
        acknowledged = -1
        while acknowledged < 300:
            acknowledged = int(child.stdout.readline())
        for _ in range(20):
            child.stdin.write("\n")
            child.stdin.flush()
            acknowledged = int(child.stdout.readline())
        wait_until(lambda: len(list(RecordReader(path))) > acknowledged, timeout_s=5)
        child.stdin.write("\n" * 50)  # kills it in the middle of a burst
        child.stdin.flush()
        child.send_signal(signal.SIGKILL)
        child.wait(10)
    reader = RecordReader(path)
    found = list(reader)
    assert len(found) > acknowledged
    assert [record.seq for record in found] == list(range(len(found)))
    assert reader.truncated


def test_a_record_is_on_disk_while_the_writer_is_open(tmp_path, record):
    """Nothing waits for a full buffer: a single record is readable while the run goes on."""
    path = tmp_path / "records"
    writer = RecordWriter(path)
    writer.put(record(1))
    wait_until(lambda: list(RecordReader(path)) == [record(1)])
    writer.close()


FULL_DISK = """
import random, resource, sys, time
from pathlib import Path
from loadgen.adapters.store.records import RecordReader, RecordWriter
from loadgen.core.errors import StoreError
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
path = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
writer = RecordWriter(path)
put = "never failed"
for seq in range(100_000):
    events = tuple(random.randrange(2**61) for _ in range(50))
    try:
        writer.put(RequestRecord(seq=seq, request_id="r", phase=Phase.MEASURE, outcome=Outcome.COMPLETED, event_ns=events))
    except StoreError as fault:
        put = str(fault)
        if "too slow" not in put:
            break
        time.sleep(0.001)
try:
    writer.close()
    closed = "in peace"
except StoreError as fault:
    closed = str(fault)
print(put, closed, len(list(RecordReader(path))), sep="\\n")
"""  # noqa: E501


def test_a_full_disk_is_loud_and_keeps_what_was_written(tmp_path):
    """When the disk takes no more, the next put and the close raise naming file and reason; earlier records stay."""
    path = tmp_path / "records"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    put, closed, readable = done.stdout.splitlines()
    assert put == closed == f"{path}: cannot be written: File too large"
    assert int(readable) > 50


def test_a_disk_too_slow_for_the_load_is_loud(tmp_path, record):
    """With the limit reached a put raises instead of dropping; the rest is stored; close says how many lack."""
    path = tmp_path / "records"
    writer = RecordWriter(path, limit_bytes=10_000)
    accepted, refused = [], []
    for seq in range(20_000):
        try:
            writer.put(record(seq))
            accepted.append(seq)
        except StoreError as fault:
            refused.append(str(fault))
    with pytest.raises(StoreError, match=f"{len(refused)} records were refused"):
        writer.close()
    assert refused
    assert all("the disk is too slow" in message for message in refused)
    assert [record.seq for record in RecordReader(path)] == accepted


def test_a_record_larger_than_the_limit_is_accepted_alone(tmp_path, record):
    """The limit bounds what waits; it never makes one record impossible to store."""
    large = record(0, event_ns=tuple(range(1000)))
    write(tmp_path / "r", [large], limit_bytes=100)
    assert list(RecordReader(tmp_path / "r")) == [large]


def test_closing_twice_does_nothing_and_a_late_record_is_refused(tmp_path, record):
    """close is safe to repeat; a record after it is an error, never lost in silence."""
    writer = RecordWriter(tmp_path / "r")
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="after the file was closed"):
        writer.put(record(0))


def test_an_existing_file_is_never_written_over(tmp_path, record):
    """Records of an earlier run are safe from a second writer."""
    data = write(tmp_path / "r", [record(0)])
    with pytest.raises(StoreError, match="File exists"):
        RecordWriter(tmp_path / "r")
    assert (tmp_path / "r").read_bytes() == data


def test_writers_leave_no_thread_and_no_descriptor(tmp_path, record):
    """Fifty writers later the process has as many threads and open files as before."""

    def held() -> tuple[int, int]:
        return threading.active_count(), len(list(Path("/dev/fd").iterdir()))

    before = held()
    for i in range(50):
        write(tmp_path / str(i), [record(0)])
    assert held() == before


def test_known_secrets_never_reach_a_record(tmp_path, record):
    """A key that a server echoed in a message or a text is replaced, in plain and in JSON-escaped form."""
    secret, odd = "sk-0123456789", 'k"\\é\n-long-enough'
    stored = record(
        1,
        failure=Failure(kind=FailureKind.HTTP_4XX, http_status=401, message=f"bad key {secret}."),
        text=f"said {odd} and {secret}",
        outcome=Outcome.FAILED,
    )
    (line,) = plain_lines(write(tmp_path / "r", [stored], scrubber=Scrubber((secret, odd))))
    assert secret.encode() not in line
    assert json.dumps(odd, ensure_ascii=False)[1:-1].encode() not in line
    (found,) = RecordReader(tmp_path / "r")
    assert found == replace(
        stored,
        failure=replace(stored.failure, message=f"bad key {REDACTED}."),
        text=f"said {REDACTED} and {REDACTED}",
    )


def test_half_a_surrogate_pair_does_not_stop_the_writer(tmp_path, record):
    """Text that UTF-8 cannot hold, as a broken escape makes it, costs that character and nothing else."""
    write(tmp_path / "r", [record(0, text="a\ud800b"), record(1)])
    assert [found.text for found in RecordReader(tmp_path / "r")] == ["a?b", None]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"output_tokens": -5}, "output_tokens: expected a count from 0 to 1099511627776, found -5"),
        ({"output_tokens": 10**18}, "output_tokens: expected a count"),
        ({"last_ns": 2**63}, "last_ns: expected nanoseconds of a run"),
        ({"event_ns": (0, -(2**62))}, "event_ns: expected nanoseconds of a run"),
        ({"event_tokens": (1, -1)}, "event_tokens: expected a count"),
        ({"speculation": RequestSpeculation(histogram=(1, 2**63))}, "speculation.histogram: expected a count"),
        ({"speculation": RequestSpeculation(steps=-1)}, "speculation.steps: expected a count"),
    ],
)
def test_numbers_that_no_run_can_have_had_are_named(tmp_path, record, changes, expected):
    """File, line and field; what was before is read."""
    path = tmp_path / "records.zst"
    write(path, [record(0), record(1, **changes)])
    reader = iter(RecordReader(path))
    assert next(reader) == record(0)
    with pytest.raises(StoreError, match=re.escape(f"{path}: line 2: {expected}")):
        next(reader)


@pytest.mark.parametrize("line", [b'{"seq": 0, "last_ns": ' + b"1" * 400 + b"}", b"[" * 200_000])
def test_json_beyond_all_bounds_is_named(tmp_path, line):
    """A number of four hundred digits, or lists in one another without end."""
    path = tmp_path / "records.zst"
    path.write_bytes(zstandard.compress(line + b"\n"))
    with pytest.raises(StoreError, match="line 1: "):
        list(RecordReader(path))
