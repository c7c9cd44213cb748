"""`loadgen demo`: the main job on simulated servers, as an experiment."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadgen.adapters.store.experiment_folder import ExperimentFolder
from loadgen.wiring.demo import DEMO, demo_experiment
from loadgen.wiring.experiment_plan import planned

ARMS = ("eagle3", "draft-model", "ngram")


def test_it_is_an_experiment_of_less_than_a_minute() -> None:
    """By its own estimate, with every level large enough for the means and medians that its report compares."""
    found = planned(demo_experiment(1))
    assert found.estimate.duration_s is not None
    assert found.estimate.duration_s < 60
    assert [arm.name for arm in found.plan.arms] == ["baseline", *ARMS, "baseline-again"]
    assert set(found.servers.values()) == {"sim"}
    assert not any("compare mean" in note or "two requests for each slot" in note for note in found.notes)


def test_a_seed_draws_the_load_and_what_is_accepted_anew() -> None:
    """In every arm alike; nothing else of the file changes."""
    first, other = demo_experiment(1), demo_experiment(2)
    assert other.workload.seed == 2
    assert [arm.sim_options().seed for arm in other.arms.values()] == [2, 2, 2, 2]
    assert planned(first).plan.digest != planned(other).plan.digest
    assert demo_experiment(1) == first
    assert other.model_copy(update={"workload": first.workload, "arms": first.arms}) == first


@pytest.mark.slow
def test_the_gain_fades_and_turns_into_a_loss(tmp_path: Path) -> None:
    """EAGLE-3 pays throughout, though less and less, and n-gram stops paying inside the ladder, as expected of them.

    What it leaves is the folder of an experiment with the report as a page; answers are the baseline's.
    """
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", "demo", "--out", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (comparison,) = json.loads(done.stdout)["ladders"]
    (path,) = tmp_path.iterdir()
    folder = ExperimentFolder.open(path)
    assert len(folder.finished()) == len(list(folder.load_manifest().plan.cells)) == 20
    assert (path / "report.html").read_text().lower().startswith("<!doctype html>")

    arms = {ladder["arm"]["name"]: ladder for ladder in comparison["arms"]}
    assert tuple(arms) == ARMS
    speedups = {
        name: [level["gain"]["verdict"]["speedup"]["value"] for level in arm["levels"]] for name, arm in arms.items()
    }
    top = comparison["baseline"]["levels"][-1]["level"]
    assert arms["eagle3"]["faster_up_to"] == top
    assert all(found[-1] < 0.9 * max(found) for found in speedups.values())
    assert arms["ngram"]["levels"][0]["level"] < arms["ngram"]["crossover"]["level"] < top
    assert arms["ngram"]["levels"][-1]["gain"]["verdict"]["claim"] == "slower"
    for arm in arms.values():
        assert not arm["losslessness"]["lossy"]
        for level in arm["levels"]:
            assert level["gain"]["verdict"]["speedup"]["value"] == pytest.approx(level["expected"]["speedup"], rel=0.25)
    assert comparison["again"]["arm"]["name"] == "baseline-again"
    for words in ("one start of each arm", "no engine was measured", "left within"):
        assert any(words in note for note in comparison["notes"])


@pytest.mark.slow
def test_an_interrupted_demo_keeps_what_it_has(tmp_path: Path) -> None:
    """One SIGINT: the command ends soon with 130, says where the runs are and from which file, and leaves no server."""
    line = [sys.executable, "-m", "loadgen", "demo", "--out", str(tmp_path)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not any(
            records.stat().st_size for records in tmp_path.glob("experiment-*/cells/r1-baseline/c1/records.jsonl.zst")
        ):
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    (path,) = tmp_path.iterdir()
    assert "0 of 20 cells are measured" in stdout
    assert f"saved in {path}\n" in stdout
    assert str(DEMO) in stderr
    folder = ExperimentFolder.open(path)
    for sitting in folder.load_manifest().plan.sittings:
        (start,) = folder.sitting(sitting).starts
        assert start.stopped == "asked"
    assert not list(path.glob("*.kept.json"))
    assert not (path / "report.html").exists()
