"""`loadgen experiment plan` as a user runs it."""

import json
from pathlib import Path

import pytest

from loadgen.cli.app import run_command_line
from tests.cli.commands import loadgen

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says, run in this process."""
    assert run_command_line(["experiment", "plan", *arguments]) == 0
    return capsys.readouterr().out


def test_a_plan_in_the_terminal(tmp_path: Path) -> None:
    """Arms, levels, order, time; nothing is started and nothing written."""
    done = loadgen("experiment", "plan", EXAMPLES / "simulator.yaml", out=tmp_path)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("PLAN  EAGLE-3 and n-gram lookup on a simulated H100  8 arms x 3 levels x 3 repeats")
    for line in (
        "eagle3-forced-4  simulated  eagle3             3  eagle3, everything accepted: the bound",
        "c16    16 in flight",
        "repeat 1   baseline, eagle3, ngram,",
        "cells      72 in 24 sittings",
        "requests   5616, 576 of them warm-up",
        "with steps of simulated servers as their model has them",
    ):
        assert line in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """Strict JSON: every cell by its folder, every load, and the figures of the estimate."""
    found = json.loads(printed(capsys, str(EXAMPLES / "rates.yaml"), "--json"), parse_constant=pytest.fail)
    assert (found["schema"], found["order"], found["baseline"]) == ("loadgen.plan/1", "abba", "baseline")
    assert found["sittings"][1]["cells"] == ["r1-eagle3/rps1", "r1-eagle3/rps2", "r1-eagle3/rps4", "r1-eagle3/rps8"]
    assert [level["load"]["num_requests"] for level in found["levels"]] == [120, 240, 480, 960]
    assert [arm["server"] for arm in found["arms"]] == ["url", "url", "url"]
    assert found["estimate"]["requests"] == 9 * (120 + 240 + 480 + 960 + 4 * 4)
    assert len(found["digest"]) == len(found["workload_digest"]) == 64


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_has_a_plan(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the data that lies beside it, within its budget."""
    assert "will not be run" not in printed(capsys, str(path))


def test_a_budget_that_does_not_do_is_the_first_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The plan can be looked at all the same."""
    path = tmp_path / "mine.yaml"
    path.write_text((EXAMPLES / "simulator.yaml").read_text() + "budget: 1m\nprice_per_hour: 2\n")
    text = printed(capsys, str(path))
    assert text.splitlines()[1].startswith("  ! will not be run: it should take ")
    assert "price      0.277" in text


def test_a_wrong_file_is_an_error_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, nothing on standard output, file, line and field in one line of text."""
    path = tmp_path / "mine.yaml"
    path.write_text((EXAMPLES / "simulator.yaml").read_text().replace("repeats: 3", "repeats: three"))
    assert run_command_line(["experiment", "plan", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"loadgen: {path}:26: repeats: ")
    assert len(said.err.splitlines()) == 1


def test_what_this_machine_lacks_is_said_and_no_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all arms that lack it: the engine, or Docker Compose."""
    monkeypatch.setenv("PATH", str(tmp_path))
    text = (EXAMPLES / "profiles.yaml").read_text().replace("prompts.jsonl", str(EXAMPLES / "prompts.jsonl"), 1)
    for launch, missing in (
        ("process", "vllm is not on the PATH; install the engine, or say `launch: compose`"),
        ("compose", "launch: compose takes Docker with its Compose plugin, and there is no `docker` here"),
    ):
        (tmp_path / "mine.yaml").write_text(text.replace("launch: process", f"launch: {launch}"))
        notes = json.loads(printed(capsys, str(tmp_path / "mine.yaml"), "--json"))["notes"]
        assert notes[0].startswith(f"cannot be run here: arms.baseline, arms.ngram, arms.eagle3: {missing}")
        assert len([note for note in notes if "cannot be run here" in note]) == 1
