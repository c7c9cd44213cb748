"""The folder of a sweep: its levels, and its file."""

import pytest

from loadgen.adapters.store.files import load_json
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.sweep_folder import (
    create_level,
    create_sweep,
    is_sweep,
    level_folders,
    save_sweep,
)
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import SWEEP_SCHEMA, Knee, Sweep, SweepLevel
from loadgen.core.run import Load, LoadMode


@pytest.fixture
def stored_sweep(tmp_path, manifest, summary):
    """Three levels with summaries, in the order in which they ran; `sweep.json` is saved."""
    path = create_sweep(tmp_path, "s1")
    levels = []
    for index, level in enumerate((4, 1, 16)):
        folder = create_level(path, index, level)
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
    save_sweep(path, sweep)
    return path, sweep


def test_a_sweep_round_trips(stored_sweep):
    """What was saved is what is read."""
    path, sweep = stored_sweep
    assert load_json(path / "sweep.json", Sweep, SWEEP_SCHEMA) == sweep
    assert is_sweep(path)


def test_levels_are_run_folders_in_order(stored_sweep):
    """Each level is a run folder of its own, given in the order in which it ran."""
    path, _ = stored_sweep
    assert [folder.path.name for folder in level_folders(path)] == ["000-4", "001-1", "002-16"]
    assert [RunFolder.open(folder.path).load_manifest().run_id for folder in level_folders(path)] == [
        "run-4",
        "run-1",
        "run-16",
    ]


def test_a_killed_sweep_is_a_sweep(stored_sweep, manifest):
    """Without `sweep.json` the levels that have begun are still there, also the one that was cut off."""
    path, _ = stored_sweep
    (path / "sweep.json").unlink()
    create_level(path, 3, 32).save_manifest(manifest(run_id="cut off"))
    assert is_sweep(path)
    assert len(level_folders(path)) == 4


def test_something_else_is_no_sweep(tmp_path):
    """Neither is a folder without levels, and one that is there already is not written into."""
    assert not is_sweep(tmp_path)
    create_sweep(tmp_path, "s1")
    with pytest.raises(StoreError, match="s1: cannot be created: File exists"):
        create_sweep(tmp_path, "s1")
