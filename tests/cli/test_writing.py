"""Output whose reader goes away, or whose file is a special one."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.adapters.store.files import replace_file, whole_file
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.cli.writing import write
from loadgen.core.errors import StoreError
from tests.cli.commands import ChatServer, loadgen


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A server of plain answers."""
    with ChatServer() as running:
        yield running


@pytest.fixture
def unread() -> Iterator[int]:
    """The writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def call(*arguments: object, stdout: int, stderr: int) -> "subprocess.CompletedProcess[bytes]":
    """A command with the streams given to it."""
    line = [sys.executable, "-m", "loadgen", *map(str, arguments)]
    return subprocess.run(line, stdout=stdout, stderr=stderr, timeout=60, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize(
    ("command", "load"),
    [("run", ("--num-requests", 4)), ("sweep", ("--concurrency", "1,2", "--num-requests", 4, "--settle", 0))],
)
def test_load_whose_output_nobody_reads_ends_as_it_would_have(
    server: ChatServer, tmp_path: Path, unread: int, command: str, load: tuple[object, ...], form: tuple[str, ...]
) -> None:
    """`loadgen run … | head`: the exit code is that of the run, nothing is said about the pipe."""
    line = (command, "--url", server.url, *load, "--out", tmp_path, "--no-progress", *form)
    done = call(*line, stdout=unread, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
    missed = ("--slo", "ttft=1us", "--slo-attainment", 1)
    assert call(*line, *missed, stdout=unread, stderr=subprocess.PIPE).returncode == 1


def test_a_run_whose_progress_nobody_reads_is_complete(server: ChatServer, tmp_path: Path, unread: int) -> None:
    """`loadgen run … 2>&1 | head -1`: the pipe that breaks at the progress line costs no result."""
    done = call("run", "--url", server.url, "--num-requests", 4, "--out", tmp_path, stdout=unread, stderr=unread)
    assert done.returncode == 0
    (path,) = tmp_path.iterdir()
    assert RunFolder.open(path).load_summary().requests.completed == 4


@pytest.mark.slow
def test_other_commands_whose_output_nobody_reads(server: ChatServer, tmp_path: Path, unread: int) -> None:
    """The commands that only look end with 0."""
    run = loadgen("run", "--url", server.url, "--num-requests", 4, out=tmp_path / "runs")
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "a"}\n')
    for command in (
        ("report", run.folder.path),
        ("report", run.folder.path, "--html", "-"),
        ("export", run.folder.path, "--format", "csv"),
        ("trace", "inspect", prompts),
        ("trace", "inspect", prompts, "--json"),
    ):
        done = call(*command, stdout=unread, stderr=subprocess.PIPE)
        assert (done.returncode, done.stderr) == (0, b""), command


@pytest.mark.slow
def test_a_full_disk_behind_stdout_is_said(server: ChatServer, tmp_path: Path) -> None:
    """Lost output is an error, unlike output that nobody wanted."""
    run = loadgen("run", "--url", server.url, "--num-requests", 4, out=tmp_path / "runs")
    with Path("/dev/full").open("wb") as full:
        done = call("report", run.folder.path, stdout=full.fileno(), stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.decode().strip() == "loadgen: stdout: cannot be written: No space left on device"


def test_what_is_no_regular_file_stays_what_it_is(tmp_path: Path) -> None:
    """`-o` on a pipe writes into the pipe; on a link, into the file it leads to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        write(["a", "b\n"], pipe)
        assert reader.communicate(timeout=10)[0] == b"ab\n"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    file, link = tmp_path / "file.csv", tmp_path / "link.csv"
    link.symlink_to(file)
    write(["new\n"], link)
    assert link.is_symlink()
    assert file.read_text() == "new\n"
    assert {entry.name for entry in tmp_path.iterdir()} == {"pipe", "file.csv", "link.csv"}


def test_a_file_that_could_not_be_finished_is_as_it_was(tmp_path: Path) -> None:
    """An error half way leaves the old content and no draft."""
    file = tmp_path / "x.json"
    replace_file(file, b"old")

    def half() -> Iterator[str]:
        yield "new"
        raise StoreError("the records cannot be read")

    with pytest.raises(StoreError, match="records"):
        write(half(), file)
    assert file.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
    with pytest.raises(StoreError, match=r"no/such/x\.json: cannot be written"), whole_file(Path("no/such/x.json")):
        pass


def test_text_that_is_no_unicode_costs_a_character(tmp_path: Path) -> None:
    """Half of a surrogate pair out of a server's message does not stop an export."""
    write([json.dumps("\ud83d", ensure_ascii=False)], tmp_path / "x.json")
    assert (tmp_path / "x.json").read_text() == '"?"'
