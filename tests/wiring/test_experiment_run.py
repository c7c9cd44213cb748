"""Experiments run from end to end: what is sent to whom, and what stays."""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadgen.adapters.store.experiment_folder import CellState
from loadgen.core.errors import ConfigError, ExitCode, StoreError
from loadgen.wiring.experiment import FinishedExperiment
from loadgen.wiring.experiment_report import experiment_result
from tests.wiring.experiments import Watcher, asked, experiment_file, little, run, tree

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, watcher: Watcher) -> FinishedExperiment:
    """Two arms, two levels, two repeats."""
    arms = {"baseline": little(), "other": little("tokens=5")}
    return run(experiment_file(tmp_path_factory.mktemp("whole"), arms, repeats=2), watcher=watcher)


def test_every_cell_is_measured(finished: FinishedExperiment) -> None:
    """In the order of the plan, each in a run folder that can be read by itself."""
    assert list(finished.ends) == [cell.name for cell in finished.manifest.plan.cells]
    assert list(finished.ends)[2:6] == ["r1-other/c1", "r1-other/c2", "r2-other/c1", "r2-other/c2"]
    assert all(end.state is CellState.FINISHED and end.valid for end in finished.ends.values())
    assert (finished.interrupted, finished.code) == (False, ExitCode.DONE)
    for cell in finished.manifest.plan.cells:
        folder = finished.folder.cell(cell)
        manifest = folder.load_manifest()
        assert manifest.run_id == f"r{cell.repeat}-{cell.arm.name}-{cell.level.name}"
        assert manifest.labels == {"arm": cell.arm.name, "repeat": str(cell.repeat)}
        assert folder.load_summary().requests.completed == 4


def test_all_arms_and_repeats_get_the_same_requests(finished: FinishedExperiment) -> None:
    """In the same order; each level others, on a prefix cache that was emptied before it."""
    first, *others = (asked(finished.folder, sitting.name) for sitting in finished.manifest.plan.sittings)
    assert first[0] == first[6] == "reset"
    assert len({*first}) == 1 + 10
    assert first[:7] == others[0][:7]
    for other in others:
        assert sorted(other[7:]) == sorted(first[7:])


def test_each_sitting_is_a_start(finished: FinishedExperiment) -> None:
    """With what the server told of itself and how it ended; the baseline stands on equal footing with itself."""
    for sitting in finished.manifest.plan.sittings:
        (start,) = finished.folder.sitting(sitting).starts
        assert start.served is not None
        assert start.footing is not None
        assert start.served.model == "m"
        assert (start.footing.differences, start.footing.objections, start.fault) == ((), (), None)
        assert (start.stopped, start.exit_status) == ("asked", -signal.SIGTERM)


def test_where_it_is_and_how_long_it_takes(finished: FinishedExperiment, watcher: Watcher) -> None:
    """Which run of how many, arm, level and repeat; time is left, and none after the last cell."""
    assert watcher.titles[2] == "run 3/8 · other · concurrency 1 · repeat 1/2"
    assert watcher.titles[-1] == "run 8/8 · baseline · concurrency 2 · repeat 2/2"
    left_s = [each for each in watcher.left_s if each is not None]
    assert len(left_s) == 8
    assert min(left_s[:7]) > left_s[7] == 0


@pytest.mark.parametrize("servers", ["one_at_a_time", "together"])
def test_the_time_that_is_left_learns_from_starts(tmp_path: Path, servers: str) -> None:
    """An hour is expected of each; the first has shown that they take a moment, also to those who go on later."""
    path = experiment_file(tmp_path, repeats=2, start_time=3600, servers=servers, load={"concurrency": [1]})
    watcher, later = Watcher(), Watcher()
    finished = run(path, watcher=watcher)
    left_s = [each for each in watcher.left_s if each is not None]
    assert len(left_s) == 4
    assert 0 == left_s[3] < left_s[0] < 600
    (folder,) = (tmp_path / "out").iterdir()
    shutil.rmtree(folder / "cells" / "r2-other" / "c1")
    shutil.rmtree(folder / "cells" / "r2-baseline" / "c1")
    run(path, resume=finished.folder.path, watcher=later)
    assert later.starting_left_s[0] is not None
    assert later.starting_left_s[0] < 600


def test_what_is_remarkable_about_the_footing(finished: FinishedExperiment, watcher: Watcher) -> None:
    """What no server tells, once; in the report answers that are longer than the baseline's, by arm and level."""
    (unverified,) = finished.remarks
    assert unverified.startswith("not verified to be equal, since not every server tells: prefix_caching, ")
    assert "dtype" not in unverified
    assert watcher.lines == [f"what is measured goes to {finished.folder.path}", unverified]
    (comparison,) = experiment_result(finished.folder.path).ladders
    assert [note for note in comparison.notes if "tokens on average" in note] == [
        f"other at concurrency {level}: answers have 5.0 tokens on average, those of the baseline 3.0"
        for level in (1, 2)
    ]


def test_nothing_is_left_to_resume(finished: FinishedExperiment) -> None:
    """Nothing is started and nothing written anew."""
    path = finished.folder.path
    before = {file: (path / file).stat().st_mtime_ns for file in tree(path) if file != "lock"}
    again = run(path.parents[1] / "experiment.yaml", resume=path)
    assert (again.ends, again.remarks) == (finished.ends, finished.remarks)
    assert {file: (path / file).stat().st_mtime_ns for file in tree(path) if file != "lock"} == before


@pytest.mark.parametrize("changes", [{"state": CellState.FAILED}, {"valid": False}])
def test_a_run_that_is_missing_or_invalid_shows_in_the_exit_code(
    finished: FinishedExperiment, changes: dict[str, Any]
) -> None:
    """While every arm has a run at every level; nothing has failed that cannot do without it."""
    ends = {**finished.ends, "r2-other/c1": replace(finished.ends["r2-other/c1"], **changes)}
    assert replace(finished, ends=ends).code is ExitCode.INVALID_MEASUREMENT
    del ends["r1-other/c1"]
    assert replace(finished, ends=ends).code is (
        ExitCode.TARGET_FAILED if "state" in changes else ExitCode.INVALID_MEASUREMENT
    )


def test_two_processes_do_not_share_a_folder(finished: FinishedExperiment) -> None:
    """The second is told which one is at work."""
    path = finished.folder.path
    at_work = rf"^{path}: process {os.getpid()} is at work on this experiment$"
    with finished.folder.locked(), pytest.raises(StoreError, match=at_work):
        run(path.parents[1] / "experiment.yaml", resume=path)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """Is missed before anything is started, by the name of its arm."""
    arms = {"baseline": little(), "other": {"command": "no-such-engine --port {port}"}}
    with pytest.raises(ConfigError, match=r"^arms\.other: no-such-engine: expected a program"):
        run(experiment_file(tmp_path, arms))
    assert not (tmp_path / "out").exists()


def test_what_will_not_be_run(tmp_path: Path) -> None:
    """What is beyond the budget, unless it is wanted all the same; a folder of something else; a lost variable."""
    path = experiment_file(tmp_path, load={"concurrency": [1]}, budget="1s")
    with pytest.raises(ConfigError, match=r"^budget: it should take .* and the budget is 1 s; .* --yes"):
        run(path)
    assert not (tmp_path / "out").exists()
    with pytest.raises(StoreError, match="expected the folder of an experiment"):
        run(path, resume=tmp_path)
    lost = experiment_file(
        tmp_path, {"baseline": little(), "other": little() | {"env": {"A": "${NOWHERE}"}}}, budget="1s"
    )
    with pytest.raises(ConfigError, match="NOWHERE"):
        run(lost, over_budget=True)
