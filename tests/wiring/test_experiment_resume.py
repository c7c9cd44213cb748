"""Experiments that are gone on with: after a kill, over damaged cells, and by a file that was changed."""

import re
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loadgen.adapters.launch.orphans import Kept
from loadgen.adapters.store.experiment_folder import CELLS
from loadgen.core.errors import ConfigError, StoreError
from loadgen.wiring.experiment_report import experiment_result
from tests.wiring.experiments import Watcher, asked, begun, experiment_file, little, manifests, run, states, tree

pytestmark = pytest.mark.slow


def test_damaged_cells_are_measured_again(tmp_path: Path) -> None:
    """Finished cells whose records were cut, whose samples of the server are none, are fewer or are gone, whose summary
    holds what cannot be, or whose runs are another's: a report says which and how to go on; a resume sets them aside,
    says so, and measures them anew."""
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
    edited = cells / "r1-other" / "c2" / "summary.json"
    edited.write_text(re.sub(r'("requests_per_s":) [\d.]+', r"\1 -1", edited.read_text(), count=1))

    watcher = Watcher()
    resumed = run(path, resume=whole.folder.path, watcher=watcher)
    said = [line for line in watcher.lines if "is set aside and run again" in line]
    assert [line.partition(" ")[0] for line in said] == [
        "r1-baseline/c1",
        "r1-baseline/c2",
        "r1-other/c1",
        "r1-other/c2",
    ]
    assert "records.jsonl.zst: expected records of 4 measured requests, as the summary says, found" in said[0]
    assert "server.jsonl.zst: expected zstd-compressed JSON lines" in said[1]
    assert "labels.arm: expected 'other', whose folder it is in, found 'baseline'" in said[2]
    assert "summary.json: field throughput.requests_per_s: expected a number of 0" in said[3]
    assert (resumed.code, states(resumed)) == (whole.code, states(whole))
    assert (cells / "r1-baseline" / "c1.unfinished-1" / "summary.json").is_file()
    (comparison,) = experiment_result(resumed.folder.path).ladders
    assert comparison.complete


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


def test_a_clock_that_is_set_back_hides_no_start(tmp_path: Path) -> None:
    """Levels of two starts are told apart by their number. What began before the kill has a later time than what began
    after it."""
    hang = tmp_path / "hang"
    path = experiment_file(tmp_path, {"baseline": little(f"hang={hang}"), "other": little()})
    killed(path, hang)
    folder = run(path, resume=begun(path).path).folder
    plan = folder.load_manifest().plan
    sitting = plan.sittings[0]
    record, later = folder.sitting(sitting), "2099-01-01T00:00:00+00:00"
    first, second = record.starts
    folder.save_sitting(replace(record, starts=(replace(first, started_at=later), second)))
    cell = folder.cell(sitting.cells[0])
    cell.save_manifest(replace(cell.load_manifest(), started_at=later))
    (comparison,) = experiment_result(folder.path).ladders
    assert any("come from 2 starts of its server" in note for note in comparison.notes)


def test_levels_may_stand_in_another_order(tmp_path: Path) -> None:
    """They rise in every sitting whatever the file says, so that nothing was changed. Arms are started in the order of
    the file, which is measured: another one is refused, and the message says why."""
    arms = {"baseline": little(), "other": little(), "third": little()}
    finished = run(experiment_file(tmp_path, arms, load={"concurrency": [1, 2]}))
    turned = experiment_file(tmp_path, arms, load={"concurrency": [2, 1]})
    again = run(turned, resume=finished.folder.path)
    assert (again.ends, again.manifest) == (finished.ends, finished.manifest)
    with pytest.raises(ConfigError, match=r"load.concurrency was \[1, 2\] and is \[1, 4\]$"):
        run(experiment_file(tmp_path, arms, load={"concurrency": [4, 1]}), resume=finished.folder.path)
    moved = {name: arms[name] for name in ("baseline", "third", "other")}
    said = (
        "the order in which arms are started is part of what is measured: it was baseline, other, third and is"
        " baseline, third, other"
    )
    with pytest.raises(ConfigError, match=f"beside new ones: {said}$"):
        run(experiment_file(tmp_path, moved, load={"concurrency": [1, 2]}), resume=finished.folder.path)


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
