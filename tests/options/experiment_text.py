"""Texts of an experiment's file, and what is read from them."""

from pathlib import Path

from loadgen.options.experiment import ArmSection, ExperimentFile, load_experiment

WHOLE = """\
name: mine
workload:
  synthetic: {input_tokens: 64, output_tokens: 32-64}
  ignore_eos: true
load:
  concurrency: [1, 8]
level:
  num_requests: 50
arms:
  baseline:
    command: serve model --port {port}
    env: {HF_TOKEN: "${TOKEN}", MODE: 1}
  eagle3:
    label: EAGLE-3
    method: eagle3
    draft_tokens: 3
    command: [serve, model, --port, "{port}", --draft]
    forced:
      arguments: [--accept, "{length}"]
      env: {ACCEPTED: "{accepted}"}
repeats: 2
"""
FORCED = WHOLE + "explain: forced\n"


def experiment(text: str, folder: Path) -> ExperimentFile:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_experiment(path)


def arm(text: str, folder: Path) -> ArmSection:
    """An arm of one line beside a baseline."""
    return experiment(WHOLE.replace("repeats: 2", f"  other: {text}"), folder).arms["other"]
