"""An experiment of server profiles from its file to its verdict, with programs that stand in for engine and Docker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wiring.fake_programs import path_with, simulating

EXPERIMENT = """\
name: by profile
workload: {synthetic: {input_tokens: 64, output_tokens: 32}, ignore_eos: true}
load: {concurrency: [1, 4]}
level: {num_requests: 60}
arms:
  baseline: {profile: llama-3.1-8b-baseline}
  eagle3: {profile: llama-3.1-8b-eagle3}
repeats: 1
noise: none
cooldown: 0s
"""


@pytest.mark.slow
@pytest.mark.parametrize("launch", ["process", "compose"])
def test_profiles_are_started_measured_and_compared(tmp_path: Path, launch: str) -> None:
    """Servers start and end in turn; the report has the method of the profile; no secret is left behind."""
    file = tmp_path / "mine.yaml"
    file.write_text(EXPERIMENT + f"launch: {launch}\n")
    program = simulating(tmp_path, "vllm" if launch == "process" else "docker", speed=10)
    line = [sys.executable, "-m", "loadgen", "experiment", "run", str(file), "--out", str(tmp_path / "out"), "--json"]
    variables = {**os.environ, "PATH": path_with(program), "HF_TOKEN": "my own secret"}
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=variables)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert {cell["state"] for cell in outcome["cells"]} == {"finished"}
    assert len(outcome["cells"]) == 4
    report = [sys.executable, "-m", "loadgen", "experiment", "report", outcome["path"], "--json"]
    told = subprocess.run(report, capture_output=True, text=True, timeout=60).stdout
    assert '"eagle3"' in told
    kept = [path for path in Path(outcome["path"]).rglob("*") if path.is_file()]
    assert not [path for path in kept if b"my own secret" in path.read_bytes()]
    manifest = json.loads((Path(outcome["path"]) / "experiment.json").read_text())
    arm = manifest["file"]["arms"]["eagle3"]
    assert (arm["profile"], arm["launch"], arm["method"]) == ("llama-3.1-8b-eagle3", launch, "eagle3")
