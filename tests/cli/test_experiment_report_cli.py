"""`loadgen experiment report` as a user runs it, over a folder that somebody has edited."""

import json
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.app import run_command_line
from tests.cli.experiments import stored_experiment

CELL = "r1-eagle3/c2"
GONE = object()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of two cells and one level."""
    return stored_experiment(tmp_path_factory.mktemp("edited") / "experiment", levels=(2,), repeats=1)


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("throughput", "goodput_rps"), -1, "field throughput.goodput_rps: expected a number of 0 to 1e+15, found -1"),
        (("throughput", "requests_per_s"), "many", "got `str` - at `$.throughput.requests_per_s`"),
        (("throughput", "goodput_rps"), GONE, "missing required field `goodput_rps` - at `$.throughput`"),
        (("load", "concurrency"), 10**400, "field load.concurrency: expected a number of 0 to 1e+15, found a number"),
        (("requests", "planned"), -1, "field requests.planned: expected a number of 0 to 1e+15, found -1"),
        (
            ("server", "request_times", "queue_ratio"),
            1e308,
            "field server.request_times.queue_ratio: expected a share of 0 to 1, found 1e+308",
        ),
        (
            ("verdict", "findings"),
            [{"kind": "odd", "severity": "grave", "evidence": "", "advice": ""}],
            "field verdict.findings.0.severity: expected one of invalid, warning, info, found grave",
        ),
    ],
)
def test_what_no_run_can_have_come_to_is_refused(
    stored: Path, capsys: pytest.CaptureFixture[str], keys: tuple[str, ...], value: Any, said: str
) -> None:
    """By file, field and what was expected there, with the way to measure it again; exit code 2 and no stack trace."""
    path = stored / "cells" / CELL / "summary.json"
    kept = path.read_text()
    summary = json.loads(kept)
    section = summary
    for key in keys[:-1]:
        section = section[key]
    if value is GONE:
        del section[keys[-1]]
    else:
        section[keys[-1]] = value
    try:
        path.write_text(json.dumps(summary))
        code = run_command_line(["experiment", "report", str(stored)])
    finally:
        path.write_text(kept)
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    (line,) = told.err.splitlines()
    assert line.startswith(f"loadgen: {path}: ")
    assert said in line
    assert line.endswith(f"--resume {stored} runs {CELL} again")
