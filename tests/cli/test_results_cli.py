"""What `run` and `sweep` say of their results, and that it is the same wherever it is said."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands import ANSWER, ChatServer, loadgen
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, chunk, plain

GOOD = (CHUNKED, chunk(ANSWER), LAST_CHUNK)
BROKEN = (plain(b"overloaded", status="503 Service Unavailable"),)
NEVER = ("--slo", "ttft=1us", "--slo-attainment", 1)
MISSED = "gate failed: SLO attainment 0% is below 100% (0 good of 4 due)"


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    """A server of plain answers."""
    with ChatServer() as running:
        yield running


@pytest.mark.slow
def test_a_gate_that_failed_is_named(server: ChatServer, tmp_path: Path) -> None:
    """Exit 1 beside a valid measurement: stderr says which limit was missed by what, the report says it at its end."""
    arguments = ("--url", server.url, "--num-requests", 4, "--no-progress", *NEVER)
    done = loadgen("run", *arguments, out=tmp_path / "text")
    assert done.code == 1
    assert done.stdout.startswith("✓ Valid")
    assert done.stderr == f"loadgen: {MISSED}\n"
    assert MISSED.removeprefix("gate failed: ") in done.stdout
    assert MISSED.removeprefix("gate failed: ") in loadgen("report", done.folder.path, out=tmp_path).stdout
    for form in ("--json", "--quiet"):
        silent = loadgen("run", *arguments, form, out=tmp_path / form)
        assert (silent.code, silent.stderr) == (1, f"loadgen: {MISSED}\n")


def test_a_gate_that_held_is_not_mentioned(server: ChatServer, tmp_path: Path) -> None:
    """Exit 0 and nothing on stderr."""
    kept = ("--slo", "ttft=10s", "--slo-attainment", 1, "--max-error-ratio", 0)
    done = loadgen("run", "--url", server.url, "--num-requests", 4, "--no-progress", *kept, out=tmp_path)
    assert (done.code, done.stderr) == (0, "")


@pytest.mark.slow
def test_gates_of_a_ladder(tmp_path: Path) -> None:
    """A level that misses the objectives beyond one that meets them fails nothing; failures at any level do."""
    ladder = ("--concurrency", "1,2", "--num-requests", 4, "--warmup-requests", 0, "--settle", 0, "--no-progress")
    gates = ("--slo", "ttft=10s", "--slo-attainment", 1)
    for more, code, said in (
        ((), 0, ""),
        (
            ("--max-error-ratio", 0.5),
            1,
            "loadgen: gate failed: share of failed or dropped requests 75% is above 50% (concurrency 2: 3 of 4)\n",
        ),
        (
            NEVER,
            1,
            "loadgen: gate failed: SLO attainment is below 100% at every level, 0% at best"
            " (concurrency 1: 0 good of 4 due)\n",
        ),
    ):
        with ChatServer(answers=[GOOD] * 5 + [BROKEN] * 3) as server:
            done = loadgen("sweep", "--url", server.url, *ladder, *gates, *more, out=tmp_path / str(len(more)))
        assert (done.code, done.stderr) == (code, said)


@pytest.mark.slow
def test_one_result_has_one_text(server: ChatServer, tmp_path: Path) -> None:
    """summary.json, `run --json`, `report --json` and `export --format json` are the same bytes."""
    done = loadgen("run", "--url", server.url, "--num-requests", 4, "--json", "--name", "é", out=tmp_path / "runs")
    path = done.folder.path
    stored = (path / "summary.json").read_text()
    assert stored == done.stdout
    assert stored == loadgen("report", path, "--json", out=tmp_path).stdout
    assert stored == loadgen("export", path, "--format", "json", out=tmp_path).stdout


@pytest.mark.slow
def test_one_ladder_has_one_text(server: ChatServer, tmp_path: Path) -> None:
    """The same of sweep.json; a level is the number that was asked for, and one request a level makes no knee."""
    ladder = ("--concurrency", "1,2", "--num-requests", 1, "--settle", 0, "--json")
    done = loadgen("sweep", "--url", server.url, *ladder, out=tmp_path / "runs")
    (path,) = (tmp_path / "runs").iterdir()
    stored = (path / "sweep.json").read_text()
    assert stored == done.stdout
    assert stored == loadgen("report", path, "--json", out=tmp_path).stdout
    assert stored == loadgen("export", path, "--format", "json", out=tmp_path).stdout
    assert '"asked": [\n    1,\n    2\n  ]' in stored
    assert done.summary["knee"] is None
    assert "10 requests or more" in done.summary["no_knee"]


@pytest.mark.slow
def test_a_refused_run_says_why_it_ended(tmp_path: Path) -> None:
    """All 401: the report says that the run was given up and after how many of how many requests."""
    with ChatServer(answer=(plain(b"no key", status="401 Unauthorized"),)) as server:
        done = loadgen("run", "--url", server.url, "--num-requests", 500, out=tmp_path / "runs")
        page = loadgen("report", done.folder.path, "--html", "-", out=tmp_path).stdout
    assert done.code == 4
    for text in (" ".join(done.stdout.split()), page):
        assert "The run was given up after" in text
        assert "of 500 requests: the server refused every request from the first one on." in text


@pytest.mark.slow
def test_a_server_that_dies_between_two_levels_takes_nothing_with_it(tmp_path: Path) -> None:
    """Exit 4 with the reason; the level before is shown, and where it is kept, from which it can be reported again."""
    ladder = ("--concurrency", "1,2,4", "--num-requests", 4, "--warmup-requests", 0, "--settle", 0, "--no-progress")
    with ChatServer(closes_at=4) as server:
        url = server.url
        done = loadgen("sweep", "--url", url, *ladder, out=tmp_path)
    (path,) = tmp_path.iterdir()
    assert (done.code, done.stderr.startswith(f"loadgen: {url}: ")) == (4, True), done.stderr
    assert done.stdout.endswith(f"saved in {path}\n")
    assert "1 of 3 levels" in done.stdout
    stored = (path / "sweep.json").read_text()
    assert [level["level"] for level in json.loads(stored)["levels"]] == [1]
    assert stored == loadgen("report", path, "--json", out=tmp_path).stdout


@pytest.mark.slow
def test_a_server_that_dies_between_two_probes_takes_nothing_with_it(tmp_path: Path) -> None:
    """Exit 4 with the reason; what the probe before it showed is told, stored, and told again by a report."""
    search = ("--slo", "ttft=10s", "--slo-attainment", 0.5, "--num-requests", 4, "--warmup-requests", 0)
    with ChatServer(closes_at=4) as server:
        url = server.url
        done = loadgen(
            "capacity", "--url", url, *search, "--settle", 0, "--no-progress", "--out", tmp_path, out=tmp_path
        )
    (path,) = tmp_path.iterdir()
    assert (done.code, done.stderr.startswith(f"loadgen: {url}: ")) == (4, True), done.stderr
    assert "the search was not finished" in done.stdout
    assert done.stdout.endswith(f"saved in {path}\n")
    assert [run.name for run in (path / "probes").iterdir()] == ["001-1"]
    assert (path / "capacity.json").read_text() == loadgen("report", path, "--json", out=tmp_path).stdout
