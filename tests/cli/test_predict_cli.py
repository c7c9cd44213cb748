"""`loadgen predict` as a user runs it."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import loadgen


def test_a_question_is_answered_in_the_terminal(tmp_path: Path) -> None:
    """Without a server and without an option; nothing is written but the answer."""
    done = loadgen("predict", out=tmp_path)
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith("EXPECTED, NOT MEASURED  EAGLE-3 with 3 draft tokens")
    assert list(tmp_path.iterdir()) == []


def test_json_and_page_in_one_call(tmp_path: Path) -> None:
    """The page goes to its file, JSON to stdout; both hold the same."""
    page = tmp_path / "prediction.html"
    options = ("--gpu", "a100", "--target", "qwen3-8b", "--method", "ngram", "--workload", "code-editing")
    done = loadgen("predict", *options, "--concurrency", "1,64", "--json", "--html", page, out=tmp_path)
    assert done.code == 0
    assert done.stderr == f"wrote {page}\n"
    found = json.loads(done.stdout, parse_constant=pytest.fail)
    assert [point["concurrency"] for point in found["points"]] == [1, 64]
    assert found["setting"]["gpu"] == "A100 SXM 80 GB"
    raw = page.read_text().split('id="raw">')[1].split("</script>")[0]
    assert json.loads(raw) == found


def test_step_times_from_a_file(tmp_path: Path) -> None:
    """Measured levels are the levels, and break-even is their ratio."""
    file = tmp_path / "steps.csv"
    file.write_text("concurrency,t_ar_s,t_sd_s\n1,7ms,9.8ms\n16,8ms,16ms\n")
    done = loadgen("predict", "--step-times", file, "--acceptance-length", "1.7", "--json", out=tmp_path)
    points = json.loads(done.stdout)["points"]
    assert [point["break_even_acceptance_length"] for point in points] == pytest.approx([1.4, 2.0])
    assert [point["speedup"] for point in points] == pytest.approx([1.7 / 1.4, 0.85])


def test_a_wrong_line_of_a_file_is_named(tmp_path: Path) -> None:
    """File, line and field, exit code 2, nothing on stdout."""
    file = tmp_path / "steps.csv"
    file.write_text("concurrency,t_ar_s,t_sd_s\n1,7ms,soon\n")
    done = loadgen("predict", "--step-times", file, out=tmp_path)
    assert (done.code, done.stdout) == (2, "")
    assert f"{file}:2: field 't_sd_s': expected a time above 0 such as 8ms or 0.008, got 'soon'" in done.stderr


def test_options_from_a_file_and_the_environment(tmp_path: Path) -> None:
    """As with every command; the command line wins."""
    config = tmp_path / "predict.yaml"
    config.write_text("gpu: l4\nconcurrency: [1, 2]\ndraft-tokens: 2\n")
    done = loadgen(
        "predict", "--config", config, "--gpu", "l40s", "--json", out=tmp_path, env={"LOADGEN_METHOD": "mtp"}
    )
    found = json.loads(done.stdout)
    assert (found["setting"]["gpu"], found["method"], found["draft_tokens"]) == ("L40S", "mtp", 2)


def test_a_page_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """A path in no folder is an error with a name, not a trace."""
    done = loadgen("predict", "--html", tmp_path / "none" / "p.html", out=tmp_path)
    assert done.code == 2
    assert "none/p.html: cannot be written" in done.stderr


def test_help_names_what_can_be_chosen(tmp_path: Path) -> None:
    """GPUs, models and workloads stand in the help."""
    text = " ".join(loadgen("predict", "--help", out=tmp_path, env={"COLUMNS": "200"}).stdout.split())
    for name in ("mi300x", "gpt-oss-120b", "summarising", "--step-times", "--acceptance-length"):
        assert name in text
