"""`loadgen demo`: the main job on simulated servers."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loadgen.adapters.store.sweep_folder import is_sweep, level_folders

ARMS = ("baseline", "eagle3", "draft-model", "ngram")


@pytest.mark.slow
def test_the_gain_fades_and_turns_into_a_loss(tmp_path: Path) -> None:
    """EAGLE-3 pays throughout, though less and less, and n-gram stops paying inside the ladder, as expected of them.

    Each level of each arm is stored, with the comparison and its page beside them.
    """
    done = subprocess.run(
        [sys.executable, "-m", "loadgen", "demo", "--out", str(tmp_path), "--json"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    comparison = json.loads(done.stdout)
    (folder,) = tmp_path.iterdir()
    assert json.loads((folder / "comparison.json").read_text()) == comparison
    assert (folder / "report.html").read_text().lower().startswith("<!doctype html>")
    for name in ARMS:
        assert is_sweep(folder / name)
        assert len(level_folders(folder / name)) == len(comparison["baseline"]["levels"])

    arms = {ladder["arm"]["name"]: ladder for ladder in comparison["arms"]}
    assert tuple(arms) == ARMS[1:]
    speedups = {
        name: [level["gain"]["verdict"]["speedup"]["value"] for level in arm["levels"]] for name, arm in arms.items()
    }
    top = comparison["baseline"]["levels"][-1]["level"]
    assert arms["eagle3"]["faster_up_to"] == top
    assert all(found[-1] < 0.9 * max(found) for found in speedups.values())
    assert arms["ngram"]["levels"][0]["level"] < arms["ngram"]["crossover"]["level"] < top
    assert arms["ngram"]["levels"][-1]["gain"]["verdict"]["claim"] == "slower"
    for arm in arms.values():
        for level in arm["levels"]:
            assert level["gain"]["verdict"]["speedup"]["value"] == pytest.approx(level["expected"]["speedup"], rel=0.25)
    assert any("one start of each arm" in note for note in comparison["notes"])


@pytest.mark.slow
def test_an_interrupted_demo_keeps_what_it_has(tmp_path: Path) -> None:
    """One SIGINT: the command ends soon with 130, says where the runs are, and leaves no server behind."""
    line = [sys.executable, "-m", "loadgen", "demo", "--out", str(tmp_path)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        while not any(
            records.stat().st_size for records in tmp_path.glob("demo-*/baseline/levels/*/records.jsonl.zst")
        ):
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    (folder,) = tmp_path.iterdir()
    assert f"interrupted; what was measured until then is in {folder}" in stderr
    (level,) = level_folders(folder / "baseline")
    assert level.load_manifest().interrupted
    assert not (folder / "report.html").exists()
