"""Experiments that meet an accident: what of them stays, and what is told."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from loadgen.adapters.launch.orphans import Kept
from loadgen.adapters.store.experiment_folder import CELLS, CellState
from loadgen.core.comparison.objection import Against
from loadgen.core.errors import ConfigError, ExitCode, TargetError
from loadgen.wiring.experiment_report import experiment_result
from tests.wiring.experiments import Watcher, begun, experiment_file, little, manifests, run, states

pytestmark = pytest.mark.slow


def test_a_signal_between_two_parts_is_heard(tmp_path: Path) -> None:
    """While nothing is under way that could be ended: no run begins, and no other server is started."""

    def interrupt(line: str) -> None:
        if line.startswith("not verified"):
            os.kill(os.getpid(), signal.SIGINT)

    watcher = Watcher(on_line=interrupt)
    finished = run(experiment_file(tmp_path), watcher=watcher)
    assert (finished.code, states(finished)) == (ExitCode.INTERRUPTED, {})
    baseline, other = finished.manifest.plan.sittings
    assert finished.folder.sitting(baseline).starts[0].stopped == "asked"
    assert finished.folder.sitting(other).starts == ()


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    """The run under way ends, its server is stopped, and no other is started."""

    def interrupt(title: str) -> None:
        if "concurrency 2" in title:
            os.kill(os.getpid(), signal.SIGINT)

    finished = run(experiment_file(tmp_path), watcher=Watcher(interrupt))
    assert (finished.interrupted, finished.code) == (True, ExitCode.INTERRUPTED)
    assert states(finished) == {"r1-baseline/c1": "finished"}
    baseline, other = finished.manifest.plan.sittings
    assert finished.folder.sitting(baseline).starts[0].stopped == "asked"
    assert finished.folder.sitting(other).starts == ()


def test_a_server_that_dies(tmp_path: Path) -> None:
    """Its cells have failed, with the end of its log; what comes after it is measured. Resumed, they are run again."""
    die = tmp_path / "die"
    die.touch()
    path = experiment_file(
        tmp_path,
        {"baseline": little(f"die={die}"), "other": little()},
        load={"concurrency": [1, 2, 3]},
        level={"num_requests_by_level": {1: 4, 2: 100, 3: 4}, "warmup_requests": 1},
    )
    watcher = Watcher()
    finished = run(path, watcher=watcher)
    failed = {name: end.reason for name, end in finished.ends.items() if end.state is CellState.FAILED}
    assert list(failed) == ["r1-baseline/c2", "r1-baseline/c3"]
    said = (failed["r1-baseline/c2"] or "").splitlines()
    assert (said[0], said[-1]) == ("the server ended with exit status 9", "out of memory")
    assert failed["r1-baseline/c3"] == "the server was no longer there"
    assert (len(finished.ends), finished.code) == (6, ExitCode.TARGET_FAILED)
    assert manifests(finished.folder)["r1-baseline/c2"]["ended_by"] == "unreachable"
    assert any(line.startswith("r1-baseline/c2 failed: the server ended") for line in watcher.lines)

    die.unlink()
    again = run(path, resume=finished.folder.path)
    assert (again.code, set(states(again).values())) == (ExitCode.DONE, {"finished"})
    assert (again.folder.path / CELLS / "r1-baseline" / "c2.unfinished-1").is_dir()
    assert not (again.folder.path / CELLS / "r1-baseline" / "c3.unfinished-1").exists()


def test_a_server_that_dies_before_its_turn(tmp_path: Path) -> None:
    """While another one is measured: how it ended is told, and not only that it cannot be reached."""
    path = experiment_file(tmp_path, servers="together", load={"concurrency": [1]})

    def kill(title: str) -> None:
        if "baseline" in title:
            kept = msgspec.json.decode((begun(path).path / "other.kept.json").read_bytes(), type=Kept)
            os.kill(kept.server.pid, signal.SIGKILL)

    finished = run(path, watcher=Watcher(kill))
    assert states(finished) == {"r1-baseline/c1": "finished", "r1-other/c1": "failed"}
    reason = finished.ends["r1-other/c1"].reason
    assert reason is not None
    assert reason.startswith("the server was ended by SIGKILL")


def test_a_level_at_which_nothing_completes(tmp_path: Path) -> None:
    """It was run, which is kept and told with what became of its requests; it speaks against the arm there, and no gate
    passes for want of evidence. A resume runs it again."""
    arms = {"baseline": little(), "other": little("refuse=6") | {"method": "eagle3", "draft_tokens": 3}}
    path = experiment_file(tmp_path, arms, allow_unequal=True, gates=["tpot_s.mean > 1000x"], order="sequential")
    watcher = Watcher()
    finished = run(path, watcher=watcher)
    said = "ran, and nothing completed (http_5xx 4)"
    assert states(finished) | {"r1-other/c2": said} == dict.fromkeys(finished.ends, "finished") | {"r1-other/c2": said}
    end = finished.ends["r1-other/c2"]
    assert (end.state, end.valid, end.reason) == (CellState.EMPTY, False, said)
    assert any(line.startswith(f"r1-other/c2: {said}; loadgen report ") for line in watcher.lines)
    assert finished.code is ExitCode.TARGET_FAILED

    result = experiment_result(finished.folder.path)
    (comparison,) = result.ladders
    assert comparison.complete
    assert f"r1-other/c2: {said}" in comparison.notes
    assert not any("not measured" in note for note in comparison.notes)
    (other,) = comparison.arms
    (objection,) = other.levels[1].objections
    assert (objection.against, objection.baseline, objection.arm) == (Against.FAILURES, 0, 1)
    assert [(gate.at, gate.value) for gate in result.failed_gates if gate.at == "concurrency 2"] == [
        ("concurrency 2", None)
    ]
    assert result.code is ExitCode.GATE_FAILED
    (schedule,) = comparison.schedules
    assert schedule.not_run == ()
    assert schedule.draft_tokens_by_batch[-1][-1] == 0

    again = run(path, resume=finished.folder.path)
    assert (again.folder.path / CELLS / "r1-other" / "c2.unfinished-1").is_dir()
    assert states(again)["r1-other/c2"] == "finished"


def test_a_server_that_does_not_come_up(tmp_path: Path) -> None:
    """An arm's cells have failed and the baseline's are measured. Without the baseline nothing is worth measuring."""
    arms = {"baseline": little(), "other": little("dead")}
    path = experiment_file(tmp_path, arms, load={"concurrency": [1]})
    finished = run(path)
    assert states(finished) == {"r1-baseline/c1": "finished", "r1-other/c1": "failed"}
    assert "no such model" in (finished.ends["r1-other/c1"].reason or "")
    assert finished.code is ExitCode.TARGET_FAILED
    (start,) = finished.folder.sitting(finished.manifest.plan.sittings[1]).starts
    assert (start.how, start.served, start.footing) == (None, None, None)

    (tmp_path / "dead").mkdir()
    path = experiment_file(tmp_path / "dead", arms, baseline="other")
    with pytest.raises(TargetError, match=r"(?s)other, which all is compared with: .*no such model"):
        run(path)
    assert begun(path).ends() == {}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ("a,b", "other: model: expected one of the server's 2 models: a, b"),
        ("", "other: model: expected a name, since"),
    ],
)
def test_a_server_whose_model_nobody_names(models: str, expected: str, tmp_path: Path) -> None:
    """It is named by its arm, with the field of the file that says which one is meant; what was measured stays."""
    arms = {"baseline": little(), "other": little(f"models={models}")}
    path = experiment_file(tmp_path, arms, load={"concurrency": [1]})
    with pytest.raises(ConfigError, match=f"^{expected}"):
        run(path)
    assert list(begun(path).finished()) == ["r1-baseline/c1"]
