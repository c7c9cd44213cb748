"""Answers of the length that their lines ask for, and a server that is not blamed for it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli.app import run_command_line
from loadgen.sim.child import ChildServer
from loadgen.wiring.sim import spawn_simulator

pytestmark = pytest.mark.slow

ASKED = {"messages": [{"role": "user", "content": "Say something."}]}
BLAMED = {"limit_exceeded", "ended_early"}


@pytest.fixture(scope="module")
def server() -> Iterator[ChildServer]:
    """One that keeps to every limit."""
    with spawn_simulator("--step-time", "1ms") as found:
        yield found


@pytest.mark.parametrize(
    ("lines", "options", "lengths"),
    [
        ([{"body": ASKED | {"max_tokens": 30, "ignore_eos": True}, "output_tokens": 12}], (), [30]),
        ([{"body": ASKED | {"max_tokens": 30}}, {"prompt": "x", "max_tokens": 20}], ("--max-tokens", 9), [9, 9]),
        ([{"body": ASKED | {"max_completion_tokens": 30}}, {"body": ASKED, "output_tokens": 8}], (), [30, 8]),
        ([{"body": ASKED | {"max_tokens": 6, "n": 2}}], (), [12]),
        (
            [{"body": ASKED | limit} for limit in ({"max_tokens": 6, "n": 2}, {"max_tokens": 30, "n": 2}, {"n": 3})],
            ("--max-tokens", 9),
            [12, 18, 27],
        ),
        ([{"prompt": "x", "output_tokens": 7}], ("--extra-body", '{"n": 2}'), [14]),
        (
            [{"timestamp": at / 50, "input_tokens": 9, "output_tokens": 5 + at} for at in range(3)],
            ("--replay",),
            [5, 6, 7],
        ),
    ],
)
def test_a_server_that_keeps_to_its_limits_is_not_blamed(
    server: ChildServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lines: list[dict[str, Any]],
    options: tuple[object, ...],
    lengths: list[int],
) -> None:
    """Whole bodies with limits of their own, under that of the run or without any, several answers to one request, and
    a replay: with the end of text to be ignored every answer is as long as it may be."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    line = ["run", "--url", server.url, "--trace", trace, "--trace-format", "native", "--ignore-eos", *options]
    if "--replay" not in options:
        line += ["--concurrency", 1]
    code = run_command_line([str(word) for word in (*line, "--json", "--no-progress", "--out", tmp_path / "out")])
    said = capsys.readouterr()
    assert code in (0, 3), said.err  # 3: a busy machine is a poor client, which is not this test's matter
    summary = json.loads(said.out)
    assert summary["tokens"]["output"] == sum(lengths)
    assert BLAMED.isdisjoint(finding["kind"] for finding in summary["verdict"]["findings"])
