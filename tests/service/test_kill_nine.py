"""Real processes killed at every stage of a run, on both databases: what was recorded stays, nothing runs twice, and
the next run of the same server goes through."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from loadgen.adapters.launch.orphans import identity_of
from loadgen.sim.child import ChildServer
from tests.service.house import WAIT_S, House, check_kept, reached, service, simulator

pytestmark = pytest.mark.slow

LONG = {"concurrency": 2, "num_requests": 30, "output_tokens": "16"}
SHORT = {"concurrency": 2, "num_requests": 4, "output_tokens": "4"}


@pytest.fixture(scope="module")
def target() -> Iterator[ChildServer]:
    with simulator() as found:
        yield found


@dataclass(slots=True)
class Lodging:
    """A data folder with a database, and the service on it."""

    data: Path
    _start: Callable[[], House]
    _house: House | None = field(default=None, init=False)

    def house(self) -> House:
        """The service; a new one where the last has ended."""
        if self._house is None or self._house.process.poll() is not None:
            self._house = self._start()
        return self._house


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def lodging(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lodging]:
    """With that database. What one test brought back is what the next one kills, with nothing left to do."""
    options: tuple[str, ...] = ()
    if request.param == "postgresql":
        options = ("--database", request.getfixturevalue("postgresql").fresh())
    data = tmp_path_factory.mktemp("lodging") / "data"
    with ExitStack() as stack:
        yield Lodging(data, lambda: stack.enter_context(service(data, *options)))


@pytest.mark.parametrize("stage", ["queued", "starting", "running", "finishing"])
def test_the_service_is_killed(stage: str, lodging: Lodging, target: ChildServer) -> None:
    """Come back, it ends every run: one that had not begun is measured, another keeps what it measured."""
    house = lodging.house()
    first = house.ask(target.url, **LONG)
    killed = first
    if stage == "queued":
        killed = house.ask(target.url, **SHORT)
    before = house.wait(killed, lambda run: reached(stage, run))
    child = house.child()
    house.kill()
    house = lodging.house()
    behind = house.ask(target.url, **SHORT)
    run = house.ended(killed)
    if stage == "queued":
        assert run["state"] == "completed"
    else:
        assert run["state"] in ("completed", "interrupted"), run
    assert house.ended(first)["state"] in ("completed", "interrupted")
    check_kept(lodging.data, house, killed, before)
    assert house.ended(behind)["state"] == "completed"
    assert child is None or identity_of(child) is None


@pytest.mark.parametrize("stage", ["starting", "running", "finishing"])
def test_the_process_that_measures_is_killed(stage: str, lodging: Lodging, target: ChildServer) -> None:
    """The run is interrupted with what it had, and the next one begins."""
    house = lodging.house()
    killed = house.ask(target.url, **LONG)
    behind = house.ask(target.url, **SHORT)
    before = house.wait(killed, lambda run: reached(stage, run))
    while (child := house.child()) is None and house.run(killed)["state"] == stage:
        pass
    if child is not None:
        os.kill(child, signal.SIGKILL)
    run = house.ended(killed)
    assert (run["state"], run["reason"]) in (("interrupted", "child_lost"), ("completed", None)), run
    check_kept(lodging.data, house, killed, before)
    assert house.ended(behind)["state"] == "completed"


def test_both_are_killed(lodging: Lodging, target: ChildServer) -> None:
    """Nobody is left to bring the run to its end; the next start does."""
    house = lodging.house()
    killed = house.ask(target.url, **LONG)
    before = house.wait(killed, lambda run: reached("running", run))
    child = house.child()
    assert child is not None
    house.kill()
    os.kill(child, signal.SIGKILL)
    house = lodging.house()
    run = house.ended(killed)
    assert (run["state"], run["reason"]) == ("interrupted", "service_lost")
    check_kept(lodging.data, house, killed, before)
    assert house.client.get(f"/v1/runs/{killed}/report").status_code == 200


def test_ended_in_order(lodging: Lodging, target: ChildServer) -> None:
    """A service that is asked to end interrupts its run, keeps what it measured and says so at once."""
    house = lodging.house()
    run_id = house.ask(target.url, **LONG)
    house.wait(run_id, lambda run: reached("running", run))
    house.process.terminate()
    assert house.process.wait(WAIT_S) == 0
    run = lodging.house().run(run_id)
    assert (run["state"], run["reason"]) == ("interrupted", "shutdown")
    assert run["result"]["requests"]["completed"] > 0
