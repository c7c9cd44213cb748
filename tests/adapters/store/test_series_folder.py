"""The folders of sweeps and of searches: their runs, and their file."""

import pytest

from loadgen.adapters.store.files import load_json
from loadgen.adapters.store.series_folder import SearchFolder, SweepFolder
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import SWEEP_SCHEMA, Knee, Sweep, SweepLevel
from loadgen.core.run import Load, LoadMode


@pytest.fixture
def stored_sweep(tmp_path, manifest, summary):
    """Three levels with summaries, in the order in which they ran; `sweep.json` is saved."""
    stored = SweepFolder.create(tmp_path, "s1", secrets=("hunter2-hunter2",))
    levels = []
    for index, level in enumerate((4, 1, 16)):
        folder = stored.create_run(index, level)
        folder.save_manifest(manifest(run_id=f"run-{level}"))
        result = summary(Load(mode=LoadMode.CONCURRENCY, concurrency=level), run_id=f"run-{level}", name="night")
        folder.save_summary(result)
        levels.append(SweepLevel(level=level, summary=result))
    sweep = Sweep(
        sweep_id="s1",
        name="night",
        variable="concurrency",
        levels=tuple(levels),
        knee=Knee(level=4, reason="beyond it throughput stays"),
    )
    stored.save(sweep)
    return stored, sweep


def test_a_sweep_round_trips(stored_sweep):
    """What was saved is what is read."""
    stored, sweep = stored_sweep
    assert load_json(stored.path / "sweep.json", Sweep, SWEEP_SCHEMA) == sweep
    assert SweepFolder.is_at(stored.path)


def test_runs_are_given_in_order(stored_sweep):
    """Each level is a run folder of its own, given in the order in which it ran."""
    stored, _ = stored_sweep
    runs = SweepFolder(stored.path).runs()
    assert [run.path.name for run in runs] == ["000-4", "001-1", "002-16"]
    assert [run.load_manifest().run_id for run in runs] == ["run-4", "run-1", "run-16"]


def test_no_secret_reaches_a_file_of_a_series(stored_sweep, manifest):
    """Neither its own nor those of its runs."""
    stored, sweep = stored_sweep
    stored.create_run(3, 32).save_manifest(manifest(name="hunter2-hunter2"))
    stored.save(Sweep(sweep_id="hunter2-hunter2", name=None, variable="concurrency", levels=sweep.levels, knee=None))
    files = [path for path in stored.path.rglob("*") if path.is_file()]
    assert len(files) == 8
    assert not any(b"hunter2" in path.read_bytes() for path in files)


def test_a_killed_sweep_is_a_sweep(stored_sweep, manifest):
    """Without `sweep.json` the levels that have begun are still there, also the one that was cut off."""
    stored, _ = stored_sweep
    (stored.path / "sweep.json").unlink()
    stored.create_run(3, 32).save_manifest(manifest(run_id="cut off"))
    assert SweepFolder.is_at(stored.path)
    assert len(stored.runs()) == 4


@pytest.mark.parametrize(("kind", "other"), [(SweepFolder, SearchFolder), (SearchFolder, SweepFolder)])
def test_something_else_is_none(tmp_path, kind, other):
    """Neither is a folder without runs, nor one of the other kind; one that is there already is not written into."""
    assert not kind.is_at(tmp_path)
    stored = kind.create(tmp_path, "s1")
    assert kind.is_at(stored.path)
    assert not other.is_at(stored.path)
    with pytest.raises(StoreError, match="s1: cannot be created: File exists"):
        kind.create(tmp_path, "s1")
