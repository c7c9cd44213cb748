"""A ladder from the options of a form to its folder, in this process."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadgen.core.errors import TargetError
from loadgen.locustio.conductor import ladder
from loadgen.locustio.conductor.following import Follower
from loadgen.options.locust import LocustOptions
from loadgen.options.resolve import resolve
from tests.cli.commands import ChatServer
from tests.locustio.told import Told


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server of plain answers of two tokens."""
    with ChatServer() as running:
        yield running


def run(options: LocustOptions, told: Told) -> dict[str, Any]:
    measured = ladder.measured_of(options)
    follower = Follower(
        told, lambda summary: measured.add(summary) or told("measured", **measured.as_json()), out=options.out
    )
    return asyncio.run(ladder.run_ladder(options, told, follower))


def test_a_ladder_leaves_what_a_sweep_leaves_and_tells_of_each_level(server: ChatServer, tmp_path: Path) -> None:
    """Title and users of a level, its counts in differences that add up, then what it came to; at last the whole."""
    given = {"url": server.url, "concurrency": "1,2", "num_requests": "6", "settle": "0s", "out": str(tmp_path)}
    told = Told()
    ended = run(resolve(LocustOptions, given, environment={}), told)
    assert (ended["code"], ended["interrupted"], json.loads(ended["document"])["schema"]) == (
        0,
        False,
        "loadgen.sweep/1",
    )
    (sweep,) = tmp_path.iterdir()
    assert {path.name for path in sweep.iterdir()} == {"levels", "sweep.json", "report.html"}
    levels = told.named("level")
    assert [(level["title"], level["users"]) for level in levels] == [("concurrency 1", 1), ("concurrency 2", 2)]
    counts = [step["counts"].get("outcomes", {}).get("completed", 0) for step in told.named("progress")]
    assert sum(counts) == 12
    assert [len(step["rows"]) for step in told.named("measured")] == [1, 2]
    assert told.named("measured")[-1]["rows"][1]["requests"]["completed"] == 6


def test_a_server_that_dies_between_two_levels_takes_nothing_with_it(tmp_path: Path) -> None:
    """What it cannot be asked any more is said, and beside it stand folder, report and results of the levels before."""
    with ChatServer(closes_at=6) as server:
        url = server.url
        given = {"url": url, "concurrency": "1,2,4", "num_requests": "6", "warmup_requests": "0"}
        told = Told()
        options = resolve(LocustOptions, given | {"settle": "0s", "out": str(tmp_path)}, environment={})
        ended = run(options, told)
    assert (ended["code"], ended["interrupted"]) == (4, False)
    assert ended["error"].startswith(f"{url}: ")
    (sweep,) = tmp_path.iterdir()
    assert (ended["path"], ended["report"]) == (str(sweep), str(sweep / "report.html"))
    assert told.named("saving") == [{"path": str(sweep)}]
    assert [level["level"] for level in json.loads(ended["document"])["levels"]] == [1]
    assert (sweep / "report.html").is_file()


def test_a_target_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """As for any other command, and nothing is left."""
    options = resolve(LocustOptions, {"url": "http://127.0.0.1:9", "out": str(tmp_path / "runs")}, environment={})
    with pytest.raises(TargetError, match="cannot be reached"):
        run(options, Told())
    assert not (tmp_path / "runs").exists()
