"""Experiments run from end to end: what is sent to whom, what stays, and how they go on after accidents."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import msgspec
import pytest

from loadgen.adapters.launch.orphans import Kept
from loadgen.adapters.store.experiment_folder import CELLS, CellState, ExperimentFolder
from loadgen.core.comparison.footing import Standing
from loadgen.core.comparison.objection import Against
from loadgen.core.errors import ConfigError, ExitCode, StoreError, TargetError
from loadgen.wiring.experiment import FinishedExperiment
from loadgen.wiring.experiment_report import experiment_result
from tests.cli.commands import ChatServer
from tests.wiring.experiments import Watcher, asked, begun, experiment_file, little, run, tree

pytestmark = pytest.mark.slow


def states(finished: FinishedExperiment) -> dict[str, str]:
    return {name: end.state.value for name, end in finished.ends.items()}


def manifests(folder: ExperimentFolder) -> dict[str, dict[str, Any]]:
    """Of each cell, as it stands in its file."""
    found = (folder.path / CELLS).glob("*/c*/manifest.json")
    return {
        str(path.parent.relative_to(folder.path / CELLS)): json.loads(path.read_text())
        for path in found
        if ".unfinished-" not in str(path)
    }


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
    """Which run of how many, arm, level and repeat; ever less time is left, none after the last cell."""
    assert watcher.titles[2] == "run 3/8 · other · concurrency 1 · repeat 1/2"
    assert watcher.titles[-1] == "run 8/8 · baseline · concurrency 2 · repeat 2/2"
    left_s = [each for each in watcher.left_s if each is not None]
    assert len(left_s) == 8
    assert left_s[0] > left_s[3] > left_s[6] > left_s[7] == 0


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


def test_damaged_cells_are_measured_again(tmp_path: Path) -> None:
    """Finished cells whose records were cut, whose samples of the server are none, are fewer or are gone, or whose runs
    are another's: a report says which and how to go on; a resume sets them aside, says so, and measures them anew."""
    path = experiment_file(tmp_path, {"baseline": little(f"busy={tmp_path / 'busy'}"), "other": little()})
    whole = run(path)
    cells = whole.folder.path / CELLS
    scrapes = cells / "r1-baseline" / "c2" / "server.jsonl.zst"
    kept = scrapes.read_bytes()
    for damaged, said in (
        (b"garbage", "expected zstd"),
        (kept[:-6], "and it was cut"),
        (b"", "as the summary says, found 0"),
    ):
        scrapes.write_bytes(damaged)
        with pytest.raises(StoreError, match=rf"server.jsonl.zst: .*{said}.*--resume \S+ runs r1-baseline/c2 again"):
            experiment_result(whole.folder.path)
    scrapes.write_bytes(kept)
    records = cells / "r1-baseline" / "c1" / "records.jsonl.zst"
    records.write_bytes(records.read_bytes()[:-40])
    with pytest.raises(StoreError, match=r"measured requests.*--resume \S+ runs r1-baseline/c1 again"):
        experiment_result(whole.folder.path)
    scrapes.write_bytes(b"garbage")
    shutil.rmtree(cells / "r1-other" / "c1")
    shutil.copytree(cells / "r1-baseline" / "c2", cells / "r1-other" / "c1")

    watcher = Watcher()
    resumed = run(path, resume=whole.folder.path, watcher=watcher)
    said = [line for line in watcher.lines if "is set aside and run again" in line]
    assert [line.partition(" ")[0] for line in said] == ["r1-baseline/c1", "r1-baseline/c2", "r1-other/c1"]
    assert "records.jsonl.zst: expected records of 4 measured requests, as the summary says, found" in said[0]
    assert "server.jsonl.zst: expected zstd-compressed JSON lines" in said[1]
    assert "labels.arm: expected 'other', whose folder it is in, found 'baseline'" in said[2]
    assert (resumed.code, states(resumed)) == (whole.code, states(whole))
    assert (cells / "r1-baseline" / "c1.unfinished-1" / "summary.json").is_file()
    (comparison,) = experiment_result(resumed.folder.path).ladders
    assert comparison.complete


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


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """Is missed before anything is started, by the name of its arm."""
    arms = {"baseline": little(), "other": {"command": "no-such-engine --port {port}"}}
    with pytest.raises(ConfigError, match=r"^arms\.other: no-such-engine: expected a program"):
        run(experiment_file(tmp_path, arms))
    assert not (tmp_path / "out").exists()


def test_an_experiment_begun_before_is_named(tmp_path: Path) -> None:
    """With what goes on there, when it is run anew although cells are missing, also by a file that judges otherwise.
    Not another one's folder, and not one that is through."""
    arms = {"baseline": little(), "other": little("dead")}
    first = run(experiment_file(tmp_path, arms, load={"concurrency": [1]}))
    watcher = Watcher()
    run(experiment_file(tmp_path, load={"concurrency": [1]}), watcher=watcher)
    assert not any("--resume" in line for line in watcher.lines)
    file = experiment_file(tmp_path, arms, load={"concurrency": [1]}, gates=["error_ratio > 1%"])
    again = run(file, watcher=watcher)
    hints = [line for line in watcher.lines if "--resume" in line]
    there = first.folder.path
    goes_on = f"loadgen experiment run {file} --resume {there}"
    assert hints == [f"this begins anew; {there} lacks cells, and is gone on with by: {goes_on}"]
    assert again.folder.path != first.folder.path


def killed(path: Path, hang: Path) -> None:
    """Runs the experiment until its server hangs at its seventh request, and kills it. The server ends by itself."""
    hang.touch()
    command = [sys.executable, "-m", "loadgen", "experiment", "run", str(path), "--out", str(path.parent / "out")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    log = None
    deadline_s = time.monotonic() + 30
    while log is None or len(log.read_text().splitlines()) < 9:
        assert time.monotonic() < deadline_s
        assert process.poll() is None
        log = next((path.parent / "out").glob("*/cells/r1-baseline/server.log"), None)
        time.sleep(0.02)
    (kept,) = log.parents[2].glob("*.kept.json")
    server = msgspec.json.decode(kept.read_bytes(), type=Kept).server
    assert server.lives
    process.kill()
    process.wait()
    while server.lives:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
    hang.unlink()


def test_a_killed_experiment_is_resumed(tmp_path: Path) -> None:
    """What was finished stays, what was not is run again beside what it left, with the requests that it should have
    had; in the end all is there that an unbroken run leaves."""
    (tmp_path / "unbroken").mkdir()
    unbroken = run(experiment_file(tmp_path / "unbroken"))
    hang = tmp_path / "hang"
    path = experiment_file(tmp_path, {"baseline": little(f"hang={hang}"), "other": little()})
    killed(path, hang)
    folder = begun(path)
    assert list(folder.finished()) == ["r1-baseline/c1"]
    kept = (folder.path / CELLS / "r1-baseline" / "c1" / "manifest.json").read_bytes()

    resumed = run(path, resume=folder.path)
    assert (resumed.code, states(resumed)) == (unbroken.code, states(unbroken))
    assert tree(folder.path) == tree(unbroken.folder.path)
    assert (folder.path / CELLS / "r1-baseline" / "c1" / "manifest.json").read_bytes() == kept
    assert (folder.path / CELLS / "r1-baseline" / "c2.unfinished-1" / "manifest.json").is_file()
    found, expected = manifests(folder), manifests(unbroken.folder)
    for name, manifest in found.items():
        for key in ("run_id", "labels", "load", "data", "first_request", "planned", "slo"):
            assert manifest[key] == expected[name][key]
    ((note,), *others) = (found[name]["notes"] for name in ("r1-baseline/c2", "r1-baseline/c1", "r1-other/c2"))
    assert "this is start 2 of its server" in note
    (comparison,) = experiment_result(folder.path).ladders
    assert [each for each in comparison.notes if "resumed within" in each] == [
        "r1-baseline: resumed within, so that its levels come from 2 starts of its server: what differs between starts"
        " may look like a difference between levels"
    ]
    assert others == [[], []]
    lines = asked(folder, "r1-baseline")
    assert lines[-6] == "reset"
    assert sorted(lines[-5:]) == sorted(asked(unbroken.folder, "r1-baseline")[-5:])
    first, second = folder.sitting(resumed.manifest.plan.sittings[0]).starts
    assert (first.stopped, second.stopped) == (None, "asked")


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


def test_a_level_waits_until_the_server_is_idle(tmp_path: Path) -> None:
    """What an earlier one left running there would be measured with it."""
    busy = tmp_path / "busy"
    busy.touch()
    found: list[bool] = []

    def look(title: str) -> None:
        found.append(busy.exists())
        if len(found) == 1:
            Timer(1.0, busy.unlink).start()

    finished = run(experiment_file(tmp_path, {"baseline": little(f"busy={busy}")}, noise="aa"), watcher=Watcher(look))
    assert finished.code is ExitCode.DONE
    assert found == [True, False, False, False]


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


def test_unequal_servers_are_refused(tmp_path: Path) -> None:
    """Before the arm gets any load, and with what differs; where it is allowed it is measured, said and stored."""
    arms = {"baseline": little(), "other": little('model_config.dtype="torch.float16"')}
    path = experiment_file(tmp_path, arms, load={"concurrency": [1]})
    with pytest.raises(ConfigError, match=r"other is not on equal footing: dtype is float16, at the baseline bfloat16"):
        run(path)
    folder = begun(path)
    assert list(folder.ends()) == ["r1-baseline/c1"]
    assert asked(folder, "r1-other") == []

    allow = experiment_file(tmp_path, arms, load={"concurrency": [1]}, allow_unequal=True)
    allowed = run(allow, resume=folder.path)
    assert allowed.code is ExitCode.DONE
    assert "other: dtype is float16, at the baseline bfloat16" in allowed.remarks
    footing = allowed.folder.sitting(allowed.manifest.plan.sittings[1]).starts[-1].footing
    assert footing is not None
    assert [each.setting for each in footing.of(Standing.UNEQUAL)] == ["dtype", "vllm_config.model_config.dtype"]


def test_servers_together_that_cannot_forget_under_rates(tmp_path: Path) -> None:
    """All of a repeat are up before the first is sent anything, and stay up to its end. Each cell has a salt of its
    own, so that no cache carries over."""
    arms = {"baseline": little("no-reset")}
    finished = run(experiment_file(tmp_path, arms, noise="aa", servers="together", load={"request_rate": [50, 100]}))
    assert (finished.code, next(iter(finished.ends))) == (ExitCode.DONE, "r1-baseline/rps50")
    baseline, again = (finished.folder.sitting(sitting).starts[0] for sitting in finished.manifest.plan.sittings)
    assert again.started_at < finished.ends["r1-baseline/rps50"].ended_at
    assert (baseline.stopped, again.stopped) == ("asked", "asked")
    salts = [line.split()[1] for name in ("r1-baseline", "r1-baseline-again") for line in asked(finished.folder, name)]
    assert len(salts) == 20
    assert [len({*salts[place : place + 5]}) for place in (0, 5, 10, 15)] == [1, 1, 1, 1]
    assert len({*salts, "-"}) == 5


def test_servers_that_run_on(tmp_path: Path) -> None:
    """They are left running, and a run says that their cache may know its prompts."""
    with ChatServer() as chat:
        arms = {"baseline": {"url": chat.url}, "other": {"url": chat.url}}
        finished = run(experiment_file(tmp_path, arms, load={"concurrency": [1]}))
        (start,) = finished.folder.sitting(finished.manifest.plan.sittings[1]).starts
    assert (finished.code, start.stopped) == (ExitCode.DONE, "left running")
    assert "cannot be told to forget prompts" in manifests(finished.folder)["r1-other/c1"]["notes"][0]


def test_two_processes_do_not_share_a_folder(finished: FinishedExperiment) -> None:
    """The second is told which one is at work."""
    path = finished.folder.path
    at_work = rf"^{path}: process {os.getpid()} is at work on this experiment$"
    with finished.folder.locked(), pytest.raises(StoreError, match=at_work):
        run(path.parents[1] / "experiment.yaml", resume=path)


def test_another_experiment_is_not_resumed(tmp_path: Path) -> None:
    """What differs is named: a field of the file, or the content of its data. What is not measured may change."""
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    workload = {"prompts": "prompts.jsonl", "max_tokens": 3}
    given: dict[str, Any] = {"workload": workload, "load": {"concurrency": [1]}}
    finished = run(experiment_file(tmp_path, **given))
    changed = experiment_file(
        tmp_path, **given | {"timeout": 9, "repeats": 2, "workload": workload | {"max_tokens": 4}}
    )
    with pytest.raises(ConfigError, match=r"workload.max_tokens was 3 and is 4; repeats was 1 and is 2$"):
        run(changed, resume=finished.folder.path)
    renamed = experiment_file(tmp_path, {"baseline": little(), "another": little()}, **given)
    with pytest.raises(ConfigError, match=r"beside new ones: arms was \['baseline', 'other'\] and is .*'another'\]$"):
        run(renamed, resume=finished.folder.path)
    same = experiment_file(tmp_path, **given, gates=["tpot_s.p50 > 2x"], timeout=60)
    assert run(same, resume=finished.folder.path).ends == finished.ends
    prompts.write_text('{"prompt": "one"}\n{"prompt": "three"}\n')
    with pytest.raises(ConfigError, match=r"the data has another content$"):
        run(same, resume=finished.folder.path)


def test_what_only_judges_may_change_at_a_resume(tmp_path: Path) -> None:
    """Gates, objectives, price, labels, GPUs and names of the new file are those that the report goes by, of all cells;
    it says what was another at the beginning. What neither measures nor judges is refused by name."""
    given: dict[str, Any] = {"load": {"concurrency": [1]}}
    finished = run(experiment_file(tmp_path, **given, gates=["error_ratio > 50%"], slo={"ttft": "1us"}))
    folder = finished.folder
    arms = {"baseline": little(), "other": little() | {"label": "The other", "gpus": 2}}
    judging = {
        "gates": ["requests_per_s < 100x", "attainment_ratio < 1"],
        "slo": {"ttft": "60s"},
        "price_per_hour": 3.0,
        "name": "renamed",
    }
    watcher = Watcher()
    again = run(experiment_file(tmp_path, arms, **given, **judging), resume=folder.path, watcher=watcher)
    assert again.ends == finished.ends
    result = experiment_result(folder.path)
    (comparison,) = result.ladders
    assert [(gate.candidate, gate.failed) for gate in comparison.gates] == [("The other", True), ("The other", False)]
    assert comparison.gates[1].value == 1.0
    assert (result.name, comparison.price_per_hour) == ("renamed", 3.0)
    told = [note for note in comparison.notes if note.startswith("changed at a resume, 20")]
    assert [note.partition(": ")[2] for note in told] == [
        "name was 'a little one' and is 'renamed'",
        "slo was 'ttft=1us' and is 'ttft=60s'",
        "gates was ['error_ratio > 50%'] and is ['requests_per_s < 100x', 'attainment_ratio < 1']",
        "price_per_hour was None and is 3.0",
        "arms.other.label was 'other' and is 'The other'",
        "arms.other.gpus was None and is 2",
    ]
    assert [arm.arm.gpus for arm in comparison.ladders] == [None, 2]
    assert not any("GPUs, " in note for note in comparison.notes), "of the baseline nobody says"
    assert watcher.lines[: len(told)] == told
    run(experiment_file(tmp_path, arms, **given, **judging), resume=folder.path)
    assert folder.load_manifest().changes == again.manifest.changes
    for refused in ({"model": "m"}, {"servers": "together"}):
        with pytest.raises(ConfigError, match=rf"not the experiment that was begun.*: {next(iter(refused))} was"):
            run(experiment_file(tmp_path, arms, **given, **judging, **refused), resume=folder.path)


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


def test_simulated_servers_stand_on_equal_footing(tmp_path: Path) -> None:
    """A speculative arm, its forced runs and the baseline once more, in the words of either engine.

    What differs because it speculates is no warning; the report tells it with its reason, and that nothing was measured
    but simulated servers.
    """
    for dialect in ("vllm", "sglang"):
        sim = {"speed": 20, "dialect": dialect}
        (tmp_path / dialect).mkdir()
        path = experiment_file(
            tmp_path / dialect,
            {"baseline": {"sim": sim}, "eagle3": {"sim": sim, "method": "eagle3", "draft_tokens": 2}},
            workload={"synthetic": {"input_tokens": 32, "output_tokens": 8}, "ignore_eos": True},
            load={"concurrency": [2]},
            noise="aa",
            explain="forced",
        )
        watcher = Watcher()
        finished = run(path, watcher=watcher)
        assert (finished.code, len(finished.ends)) == (ExitCode.DONE, 5)
        for sitting in finished.manifest.plan.sittings:
            (start,) = finished.folder.sitting(sitting).starts
            assert start.footing is not None
            assert start.footing.objections == ()
            assert bool(start.footing.of(Standing.COMPARED)) == (sitting.arm.method is not None)
            assert start.late_p99_s is not None
        assert not any("differ" in line for line in watcher.lines)
        (comparison,) = experiment_result(finished.folder.path).ladders
        assert any("no engine was measured for baseline, eagle3 (k = 2): " in note for note in comparison.notes)
        assert any("weights and cache of the drafter take memory" in note for note in comparison.notes)
