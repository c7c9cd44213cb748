"""What `README.md` tells people to type can be typed."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

from loadgen.cli.app import COMMANDS, build_app

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [block.replace("\\\n", " ") for block in re.findall(r"^```\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)]
LINES = [line for block in BLOCKS for line in block.splitlines() if line.startswith("loadgen ")]


@pytest.mark.parametrize("line", LINES)
def test_a_command_has_the_options_that_it_is_given(line: str) -> None:
    """By the parser of the command itself; files of examples are there."""
    _, name, *words = shlex.split(line, comments=True)
    found = typer.main.get_command(build_app(name)).commands[name]  # type: ignore[attr-defined]
    while hasattr(found, "commands"):
        found = found.commands[words.pop(0)]
    known = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known
    assert all((ROOT / word).is_file() for word in words if word.startswith("examples/"))


def test_every_command_has_its_row() -> None:
    """In the table of commands."""
    rows = {name for row in re.findall(r"^\| (`.*?) \| ", TEXT, re.MULTILINE) for name in re.findall(r"`(\w+)", row)}
    assert set(COMMANDS) <= rows


def test_what_is_told_to_be_installed_is_in_a_clone() -> None:
    """No package index has Loadgen: documents and messages name extras of this folder, and those that there are."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    files = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("loadgen/**/*.py")]
    told = [re.findall(r"pip install ([^\n]+)", path.read_text(encoding="utf-8")) for path in files]
    lines = [line for lines in told for line in lines]
    named = {extra for line in lines for names in re.findall(r"'\.\[([\w,]+)\]'", line) for extra in names.split(",")}
    assert {"locust", "service", "gpu", "otlp", "parquet", "postgres"} <= named <= extras
    assert [line for line in lines if "loadgen[" in line] == []


def test_what_is_linked_is_there() -> None:
    """And there is little enough to read."""
    assert [link for link in re.findall(r"\]\((?!http)([^)#]+)\)", TEXT) if not (ROOT / link).is_file()] == []
    assert len(TEXT.splitlines()) <= 160
