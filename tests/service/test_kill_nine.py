"""Real processes killed at every stage of a run, on both databases: what was recorded stays, nothing runs twice, and
the next run of the same server goes through."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadgen.adapters.launch.orphans import identity_of
from loadgen.sim.child import ChildServer
from tests.service.house import check_kept, reached, service, simulator

pytestmark = pytest.mark.slow

LONG = {"concurrency": 2, "num_requests": 30, "output_tokens": "16"}
SHORT = {"concurrency": 2, "num_requests": 4, "output_tokens": "4"}


@pytest.fixture(scope="module")
def target() -> Iterator[ChildServer]:
    with simulator() as found:
        yield found


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, ...]:
    """Options that name it."""
    if request.param == "sqlite":
        return ()
    return ("--database", request.getfixturevalue("postgresql").fresh())


@pytest.mark.parametrize("stage", ["queued", "starting", "running", "finishing"])
def test_the_service_is_killed(stage: str, tmp_path: Path, database: tuple[str, ...], target: ChildServer) -> None:
    """Come back, it ends every run: one that had not begun is measured, another keeps what it measured."""
    data = tmp_path / "data"
    with service(data, *database) as house:
        first = house.ask(target.url, **LONG)
        killed = first
        if stage == "queued":
            killed = house.ask(target.url, **SHORT)
        before = house.wait(killed, lambda run: reached(stage, run))
        child = house.child()
        house.kill()
    with service(data, *database) as house:
        behind = house.ask(target.url, **SHORT)
        run = house.ended(killed)
        if stage == "queued":
            assert run["state"] == "completed"
        else:
            assert run["state"] in ("completed", "interrupted"), run
        assert house.ended(first)["state"] in ("completed", "interrupted")
        check_kept(data, house, killed, before)
        assert house.ended(behind)["state"] == "completed"
        assert child is None or identity_of(child) is None


@pytest.mark.parametrize("stage", ["starting", "running", "finishing"])
def test_the_process_that_measures_is_killed(
    stage: str, tmp_path: Path, database: tuple[str, ...], target: ChildServer
) -> None:
    """The run is interrupted with what it had, and the next one begins."""
    data = tmp_path / "data"
    with service(data, *database) as house:
        killed = house.ask(target.url, **LONG)
        behind = house.ask(target.url, **SHORT)
        before = house.wait(killed, lambda run: reached(stage, run))
        while (child := house.child()) is None and house.run(killed)["state"] == stage:
            pass
        if child is not None:
            os.kill(child, signal.SIGKILL)
        run = house.ended(killed)
        assert (run["state"], run["reason"]) in (("interrupted", "child_lost"), ("completed", None)), run
        check_kept(data, house, killed, before)
        assert house.ended(behind)["state"] == "completed"


def test_both_are_killed(tmp_path: Path, database: tuple[str, ...], target: ChildServer) -> None:
    """Nobody is left to bring the run to its end; the next start does."""
    data = tmp_path / "data"
    with service(data, *database) as house:
        killed = house.ask(target.url, **LONG)
        before = house.wait(killed, lambda run: reached("running", run))
        child = house.child()
        assert child is not None
        house.kill()
        os.kill(child, signal.SIGKILL)
    with service(data, *database) as house:
        run = house.ended(killed)
        assert (run["state"], run["reason"]) == ("interrupted", "service_lost")
        check_kept(data, house, killed, before)
        assert house.client.get(f"/v1/runs/{killed}/report").status_code == 200


def test_ended_in_order(tmp_path: Path, target: ChildServer) -> None:
    """A service that is asked to end interrupts its run, keeps what it measured and says so at once."""
    data = tmp_path / "data"
    with service(data) as house:
        run_id = house.ask(target.url, **LONG)
        house.wait(run_id, lambda run: reached("running", run))
    assert house.process.returncode == 0
    with service(data) as house:
        run = house.run(run_id)
        assert (run["state"], run["reason"]) == ("interrupted", "shutdown")
        assert run["result"]["requests"]["completed"] > 0
