"""The folder of a run: made, opened, refused, scrubbed."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from loadgen.adapters.store.run_folder import RunFolder, new_run_id
from loadgen.core.errors import InternalError, StoreError
from loadgen.core.record import Failure, FailureKind, Outcome
from loadgen.core.redaction import REDACTED
from loadgen.core.run import ClientFacts, Load, LoadMode, TimingSource, Window


def test_run_ids_sort_by_time_and_never_repeat():
    """Names in the order of their instants, to the millisecond, and distinct within one instant."""
    start = 1_796_019_240_000_000_000
    ids = [new_run_id(start + k * 1_000_000) for k in range(3)]
    assert ids == sorted(ids)
    assert ids[0].startswith("20261130-061400-000-")
    assert len({new_run_id(start) for _ in range(200)}) == 200


def test_a_manifest_round_trips(tmp_path, manifest):
    """What was saved is loaded, before and after the end of a run fills the last fields."""
    folder = RunFolder.create(tmp_path, "r1")
    started = manifest(options={"seed": 0, "speed": None}, data={"text": "invented"}, slo={"ttft_s": 0.5})
    folder.save_manifest(started)
    assert RunFolder.open(tmp_path / "r1").load_manifest() == started
    ended = replace(
        started,
        window=Window(start_ns=0, end_ns=5, kind="whole"),
        client=ClientFacts(timing_source=TimingSource.KERNEL, cpu_ratio=0.25),
        interrupted=False,
        ended_by="requests",
    )
    folder.save_manifest(ended)
    assert RunFolder.open(tmp_path / "r1").load_manifest() == ended
    assert sorted(path.name for path in folder.path.iterdir()) == ["manifest.json"]


def test_the_manifest_is_strict_json_with_nulls(tmp_path, manifest):
    """Absent is null, a number that JSON lacks is null, and the schema is named."""
    folder = RunFolder.create(tmp_path, "r1")
    folder.save_manifest(manifest(options={"burstiness": float("inf")}))
    found = json.loads((folder.path / "manifest.json").read_text(), parse_constant=pytest.fail)
    assert found["schema"] == "loadgen.manifest/1"
    assert found["options"] == {"burstiness": None}
    assert found["window"] is None
    assert list(found) == list(asdict(manifest()))


def test_a_value_without_a_json_form_is_found_at_once(tmp_path, manifest):
    """A path object among the options stops the run when the manifest is first written, before any load."""
    with pytest.raises(InternalError, match="JSON cannot"):
        RunFolder.create(tmp_path, "r1").save_manifest(manifest(options={"out": Path("x")}))


def test_a_summary_round_trips(tmp_path, summary):
    """A summary comes back as it was saved."""
    folder = RunFolder.create(tmp_path, "r1")
    saved = summary(Load(mode=LoadMode.RATE, request_rate_rps=2.5, burstiness=1.0, seed=7))
    folder.save_summary(saved)
    assert folder.load_summary() == saved


def test_records_go_through_the_folder(tmp_path, record):
    """The folder's writer and reader agree, and truncation shows on the folder."""
    folder = RunFolder.create(tmp_path, "r1")
    writer = folder.record_writer()
    writer.put(record(0))
    writer.close()
    assert list(folder.records()) == [record(0)]
    assert not folder.truncated
    path = folder.path / "records.jsonl.zst"
    path.write_bytes(path.read_bytes()[:-4])
    assert list(folder.records()) == [record(0)]
    assert folder.truncated


def test_a_place_that_cannot_be_written_is_refused_before_any_load(tmp_path):
    """Creation proves with a real write that results can be kept; the message names path and reason."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/r1: cannot be created: Not a directory"):
        RunFolder.create(tmp_path / "file", "r1")
    with pytest.raises(StoreError, match="/proc/loadgen/r1: cannot be created"):
        RunFolder.create(Path("/proc/loadgen"), "r1")


def test_an_earlier_run_is_never_written_into(tmp_path):
    """The same name twice is an error, not a mixture of two runs."""
    RunFolder.create(tmp_path, "r1")
    with pytest.raises(StoreError, match="r1: cannot be created: File exists"):
        RunFolder.create(tmp_path, "r1")


def test_opening_something_else_says_what_was_expected(tmp_path, manifest):
    """A missing folder, a file and a folder of runs each get their own words; the newest run is proposed."""
    with pytest.raises(StoreError, match="no such run folder"):
        RunFolder.open(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="found a file"):
        RunFolder.open(tmp_path / "file")
    with pytest.raises(StoreError, match=r"found no manifest.json in it$"):
        RunFolder.open(tmp_path)
    for run_id in ("a", "b"):
        RunFolder.create(tmp_path, run_id).save_manifest(manifest(run_id=run_id))
    with pytest.raises(StoreError, match=r"it holds 2 runs, the newest is .*/b"):
        RunFolder.open(tmp_path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"schema": "other.manifest/1"}', "expected schema loadgen.manifest/1, found other.manifest/1"),
        ('{"schema": "loadgen.manifest/2"}', "newer than this version"),
        ('{"schema": "loadgen.manifest/1"}', "missing required field"),
        ('{"run_id": "x"}', "without a schema"),
        ('{"schema": "loadg', "JSON"),
        ("", "JSON"),
    ],
)
def test_another_schema_is_refused_in_words(tmp_path, manifest, content, expected):
    """A manifest of another kind, of a later major version, incomplete or cut is refused; the file is named."""
    folder = RunFolder.create(tmp_path, "r1")
    (folder.path / "manifest.json").write_text(content)
    with pytest.raises(StoreError, match=expected) as caught:
        RunFolder.open(folder.path).load_manifest()
    assert "r1/manifest.json: " in str(caught.value)


def test_later_minor_versions_and_unknown_keys_are_accepted(tmp_path, manifest):
    """A file of a later minor version is read; what it adds is skipped."""
    folder = RunFolder.create(tmp_path, "r1")
    folder.save_manifest(manifest())
    path = folder.path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": "loadgen.manifest/1.3", "new": [1]}))
    assert folder.load_manifest() == manifest(schema="loadgen.manifest/1.3")


def test_a_run_without_a_summary_says_so(tmp_path):
    """A run that died before its end has no summary, and the message names the file."""
    folder = RunFolder.create(tmp_path, "r1")
    with pytest.raises(StoreError, match=r"summary.json: cannot be read: No such file"):
        folder.load_summary()


def test_reports_are_stored_under_plain_names_only(tmp_path):
    """A report lands beside the data; a name that would leave the folder is refused."""
    folder = RunFolder.create(tmp_path, "r1")
    assert folder.save_text("report.html", "<p>ä</p>").read_text() == "<p>ä</p>"
    for name in ("../out.html", "a/b", ".hidden", ""):
        with pytest.raises(StoreError, match="plain file name"):
            folder.save_text(name, "x")


def test_no_byte_of_a_run_holds_a_secret(tmp_path, manifest, summary, record):
    """Everything a run leaves is free of its secrets, wherever a server or an option brought them in."""
    secret, quoted = "sk-very-secret-1", 'pa"ss&word-12'
    folder = RunFolder.create(tmp_path, "r1", secrets=(secret, quoted, "EMPTY"))
    folder.save_manifest(manifest(options={"headers": {"Authorization": f"Bearer {secret}", quoted: 1}}, name="EMPTY"))
    folder.save_summary(replace(summary(Load(mode=LoadMode.CONCURRENCY, concurrency=1)), name=quoted))
    folder.save_text("report.html", f"<b>{secret}</b> pa&quot;ss&amp;word-12 {quoted}")
    writer = folder.record_writer()
    writer.put(
        record(
            0,
            outcome=Outcome.FAILED,
            failure=Failure(kind=FailureKind.HTTP_4XX, message=f"no {secret}"),
            text=quoted,
        )
    )
    writer.close()
    stored = "\n".join(msg.failure.message + msg.text for msg in folder.records())
    stored += "".join(path.read_text() for path in folder.path.iterdir() if path.suffix != ".zst")
    for form in (secret, quoted, json.dumps(quoted)[1:-1], "pa&quot;ss&amp;word-12"):
        assert form not in stored
    assert stored.count(REDACTED) >= 7
    assert folder.load_manifest().name == "EMPTY", "a dummy key is no secret"
