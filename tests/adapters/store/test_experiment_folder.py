"""The folder of an experiment: what stays of it, whatever happens to who writes it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from loadgen.adapters.store.experiment_folder import (
    CELLS,
    EXPERIMENT,
    LOCK,
    PROGRESS,
    CellEnd,
    CellState,
    ExperimentFolder,
    ExperimentManifest,
    SittingRecord,
    Start,
)
from loadgen.adapters.store.run_folder import SUMMARY
from loadgen.core.comparison.footing import Served, footing
from loadgen.core.errors import StoreError
from loadgen.core.experiment.plan import Order, Plan, PlannedArm, PlannedLevel, Role, make_plan
from loadgen.core.run import Load, LoadMode
from tests.adapters.store.conftest import make_manifest

ARM = PlannedArm(name="baseline", label="Baseline", role=Role.BASELINE, of="baseline")

STARTED = "2026-01-01T00:00:00.000+00:00"


def plan() -> Plan:
    """The baseline and itself once more, over a level of each kind."""
    loads = (
        Load(mode=LoadMode.CONCURRENCY, concurrency=2, num_requests=4),
        Load(mode=LoadMode.RATE, request_rate_rps=2.5, burstiness=None, num_requests=4),
    )
    levels = [PlannedLevel(load=load, warmup_requests=1) for load in loads]
    return make_plan("made", arms=[ARM, ARM.again], levels=levels, repeats=1, order=Order.ABBA, workload={}, servers={})


@pytest.fixture
def folder(tmp_path: Path) -> ExperimentFolder:
    """A new one with the plan in it."""
    manifest = ExperimentManifest(
        experiment_id="it",
        started_at="",
        plan=plan(),
        file={"name": "made", "arms": {"baseline": {}}},
        data={},
        client_version="1",
        host={},
    )
    return ExperimentFolder.create(tmp_path / "it", manifest)


def end(cell: str, state: CellState = CellState.FINISHED) -> CellEnd:
    return CellEnd(cell=cell, state=state, valid=True, ended_at="2026-01-01T00:00:00Z")


def summarised(folder: ExperimentFolder, cell: str) -> None:
    """A summary in a cell's folder, as far as it matters here."""
    path = folder.path / CELLS / cell
    path.mkdir(parents=True)
    (path / SUMMARY).write_text("{}")


def test_what_was_planned_comes_back(folder: ExperimentFolder) -> None:
    """Arms, levels, sittings and digests, to the last value; a folder is never made twice."""
    found = ExperimentFolder.open(folder.path).load_manifest()
    assert found.plan == plan()
    with pytest.raises(StoreError, match="cannot be created"):
        ExperimentFolder.create(folder.path, found)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    """It is no experiment, and neither is one of another schema."""
    with pytest.raises(StoreError, match=r"expected the folder of an experiment, found no experiment\.json in it"):
        ExperimentFolder.open(tmp_path)
    (tmp_path / "experiment.json").write_text('{"schema": "loadgen.summary/1"}')
    with pytest.raises(StoreError, match=r"expected schema loadgen\.experiment/1, found loadgen\.summary/1"):
        ExperimentFolder.open(tmp_path).load_manifest()


def test_a_cell_is_finished_when_it_is_said_and_there(folder: ExperimentFolder) -> None:
    """A line without a summary is none, nor is a failure; what was said last of a cell counts."""
    assert folder.ends() == {}
    for name in ("a/c1", "a/c2"):
        summarised(folder, name)
    folder.note(end("a/c1", CellState.FAILED))
    folder.note(end("a/c2", CellState.FAILED))
    folder.note(end("a/c1"))
    folder.note(end("a/c3"))
    assert list(folder.ends()) == ["a/c1", "a/c2", "a/c3"]
    assert folder.finished() == {"a/c1": end("a/c1")}


@pytest.mark.parametrize("kept", [0, 1, 30, -1])
def test_a_line_that_was_cut_off_is_none(folder: ExperimentFolder, kept: int) -> None:
    """Wherever the kill struck; the next line does not suffer from it."""
    folder.note(end("a/c1"))
    path = folder.path / PROGRESS
    whole = path.read_bytes()
    folder.note(end("a/c2"))
    path.write_bytes(whole + path.read_bytes()[len(whole) :][:kept])
    assert list(folder.ends()) == ["a/c1"]
    folder.note(end("a/c3"))
    assert list(folder.ends()) == ["a/c1", "a/c3"]


def test_a_whole_line_of_something_else_is_an_error(folder: ExperimentFolder) -> None:
    """With its place."""
    folder.note(end("a/c1"))
    with (folder.path / PROGRESS).open("a") as file:
        file.write('{"cell": 3}\n')
    with pytest.raises(StoreError, match=rf"{PROGRESS}: line 2: expected loadgen.cell/1"):
        folder.ends()


def test_no_secret_is_noted(folder: ExperimentFolder) -> None:
    """In the reason of a failure, or of a server that did not come up."""
    folder.note(replace(end("a/c1"), reason="key sesame-open-up refused"), secrets=("sesame-open-up",))
    (sitting, _) = plan().sittings
    folder.begin_sitting(sitting)
    starts = (Start(started_at="", fault="sesame-open-up"),)
    folder.save_sitting(SittingRecord(sitting=sitting.name, starts=starts), secrets=("sesame-open-up",))
    assert "sesame" not in "".join(path.read_text() for path in folder.path.rglob("*.json*"))
    assert folder.ends()["a/c1"].reason == "key [secret] refused"


def test_a_sitting_comes_back(folder: ExperimentFolder) -> None:
    """With what its servers told, how they stand, and none before it has begun."""
    first, second = plan().sittings
    served = Served(engine="vllm", model="m", page={"a": {"b": [1, None]}})
    start = Start(started_at=STARTED, served=served, footing=footing(served, replace(served, model="n"), ARM))
    folder.begin_sitting(first)
    folder.save_sitting(SittingRecord(sitting=first.name, starts=(start, start)))
    assert folder.sitting(first).starts == (start, start)
    assert folder.sitting(second).starts == ()


def test_what_an_attempt_left_is_set_aside(folder: ExperimentFolder) -> None:
    """As often as there is one, each under a name of its own."""
    cell, rate, *_ = plan().cells
    for _ in range(3):
        (folder.begin_cell(cell).path / "left").write_text("")
    sitting = folder.path / CELLS / "r1-baseline"
    assert sorted(path.name for path in sitting.iterdir()) == ["c2", "c2.unfinished-1", "c2.unfinished-2"]
    assert [(sitting / f"c2.unfinished-{number}" / "left").is_file() for number in (1, 2)] == [True, True]
    assert folder.begin_cell(rate).path == sitting / "rps2.5"
    with pytest.raises(StoreError, match=r"found no manifest\.json"):
        folder.cell(rate)


def test_one_at_a_time(folder: ExperimentFolder) -> None:
    """The lock is given back however its holder ends; it names the one who has it."""
    with folder.locked():
        told = (folder.path / LOCK).read_text()
        with pytest.raises(StoreError, match=rf"process {told.strip()} is at work"), folder.locked():
            pass
    with pytest.raises(KeyError), folder.locked():
        raise KeyError
    with folder.locked():
        assert (folder.path / LOCK).read_text() == told


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("plan", "arms", 0, "role"), "compared", "plan.arms: expected the baseline first"),
        (("plan", "arms", 1, "of"), "other", "plan.arms: 'baseline-again' is of 'other', which file.arms lacks"),
        (("plan", "sittings", 1, "arm", "name"), "other", "plan.sittings: 'other' is not among plan.arms"),
        (("plan", "sittings", 1, "arm", "role"), "compared", "plan.sittings: 'baseline-again' is not among plan.arms"),
        (("file",), {"name": "made"}, "plan.arms: 'baseline' is of 'baseline', which file.arms lacks"),
        (("file", "arms", "baseline", "command"), 1, "file.arms.baseline.command: expected a list of texts"),
        (("file", "arms", "baseline", "command"), ["vllm", {}], "file.arms.baseline.command: expected a list of texts"),
        (("file", "gates"), "tpot_s.p50 > 1x", "file.gates: expected a list of texts"),
        (("file", "price_per_hour"), "free", "file.price_per_hour: expected a number above 0"),
        (("file", "slo"), "ttft=fast", "file.slo: ttft: expected a duration"),
        (("file", "losslessness"), "odd", "file.losslessness: expected none, greedy or sampled"),
    ],
)
def test_a_manifest_that_was_edited_is_an_error(
    folder: ExperimentFolder, place: tuple[str | int, ...], value: object, expected: str
) -> None:
    """Where its parts disagree on an arm, the file and the place are named."""
    path = folder.path / EXPERIMENT
    told = json.loads(path.read_text())
    *parents, last = place
    inner = told
    for key in parents:
        inner = inner[key]
    inner[last] = value
    path.write_text(json.dumps(told))
    with pytest.raises(StoreError, match=re.escape(f"{path}: {expected}")):
        folder.load_manifest()


def test_a_run_of_another_cell_is_an_error(folder: ExperimentFolder) -> None:
    """Folders that changed places: a run says of which arm and repeat it is; one that says nothing is taken."""
    cell = next(plan().cells)
    folder.begin_sitting(plan().sittings[0])
    run = folder.begin_cell(cell)
    run.save_manifest(make_manifest())
    assert folder.cell(cell).path == run.path
    for labels, expected in ({"arm": "other"}, "labels.arm"), ({"arm": "baseline", "repeat": "2"}, "labels.repeat"):
        run.save_manifest(make_manifest(labels=labels))
        with pytest.raises(StoreError, match=f"manifest.json: {expected}: expected .* whose folder it is in, found"):
            folder.cell(cell)


def test_a_start_at_no_time_is_an_error(folder: ExperimentFolder) -> None:
    """By file and field; one without a zone is none either."""
    (sitting, *_) = folder.load_manifest().plan.sittings
    folder.begin_sitting(sitting)
    for when in ("yesterday", "2026-01-01T00:00:00"):
        folder.save_sitting(SittingRecord(sitting=sitting.name, starts=(Start(started_at=when),)))
        with pytest.raises(StoreError, match=rf"sitting.json: starts.0.started_at: expected a time, found '{when}'"):
            folder.sitting(sitting)
