"""The command tree: what is listed, and what is loaded of it."""

import subprocess
import sys
from itertools import pairwise

import pytest
import typer.main

from loadgen.cli.app import COMMANDS, build_app, run_command_line


def first_paragraph(help_text: str | None) -> str:
    return " ".join((help_text or "").partition("\n\n")[0].split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_it_says_of_itself(name: str) -> None:
    """The first paragraph of its own help."""
    tree = typer.main.get_command(build_app(name))
    assert COMMANDS[name] == first_paragraph(tree.commands[name].help)


@pytest.mark.parametrize("line", [[], *([name] for name in COMMANDS), ["profiles", "list"], ["experiment", "plan"]])
def test_flags_take_no_value(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In no help, that of help included."""
    assert run_command_line([*line, "--help"]) == 0
    assert "<bool>" not in capsys.readouterr().out


@pytest.mark.parametrize("line", [["demo"], ["capacity"], ["experiment", "run"], ["experiment", "report"]])
def test_a_help_breaks_lines_where_the_terminal_ends(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A line of a paragraph has no room for the first word of the next one."""
    assert run_command_line([*line, "--help"]) == 0
    text = capsys.readouterr().out.partition("╭")[0]
    lines = [each.rstrip() for each in text.splitlines()]
    width = max(map(len, text.splitlines()))
    short = [
        (here, below)
        for here, below in pairwise(lines)
        if here and below and len(here) + 1 + len(below.split()[0]) < width - 1
    ]
    assert short == []


def test_the_list_of_commands_is_in_order(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups among the others, each once."""
    monkeypatch.setenv("COLUMNS", "200")
    assert run_command_line(["--help"]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[1] for line in words if line[:1] == ["│"] and line[1] in COMMANDS] == list(COMMANDS)


def test_the_list_of_commands_loads_none_of_them() -> None:
    """Nor what runs and reports are made with."""
    script = (
        "import sys; from loadgen.cli.app import run_command_line; run_command_line(['--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stderr.split())
    assert "loadgen.cli.app" in loaded
    assert loaded.isdisjoint({"numpy", "pydantic", "httpx2", "loadgen.cli.run", "loadgen.cli.report"})


@pytest.mark.parametrize("line", [["--", "trace", "--help"], ["trace", "--help"]])
def test_a_command_is_loaded_wherever_it_stands(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Behind two dashes, too."""
    assert run_command_line(line) == 0
    assert "convert" in capsys.readouterr().out


def test_an_unknown_command_is_held_against_all(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest of them is named."""
    assert run_command_line(["reprot"]) == 2
    assert "report" in capsys.readouterr().err
