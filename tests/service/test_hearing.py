"""What processes tell while the database is gone, and an end that no disk takes."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from loadgen.service.jobs import journal
from loadgen.service.jobs.hearing import Hearing
from loadgen.service.jobs.order import Order
from loadgen.service.services import Services
from tests.cli.commands import ChatServer
from tests.service.asking import ask, shown
from tests.service.fakes.obedient_child import Nursery


class Outage:
    """The database is gone, and comes back while somebody waits for the n-th time."""

    def __init__(self, services: Services, *, waits: int) -> None:
        self._database = services.options.data_dir / "loadgen.db"
        self._kept = self._database.with_name("kept.db")
        self._left = waits
        self.waits = 0
        services.database.close()
        self._database.rename(self._kept)
        self._database.mkdir()

    def wait(self, _seconds: float) -> None:
        self.waits += 1
        if self.waits == self._left:
            self.end()

    def end(self) -> None:
        self._database.rmdir()
        self._kept.rename(self._database)


async def told(services: Services, client: httpx2.AsyncClient) -> tuple[str, list[str]]:
    """A run that begins; its id, and the kinds of its events."""
    run_id = await ask(client)
    services.supervisor.turn()
    return run_id, kinds(services, run_id)


def kinds(services: Services, run_id: str) -> list[str]:
    with services.database.read() as connection:
        return [event["kind"] for event in journal.read(connection, run_id, after=0, limit=100)]


async def test_a_restart_of_the_database_loses_no_level(client: httpx2.AsyncClient, services: Services) -> None:
    """A state and a level wait until it is back; progress does not, of which a later line tells more."""
    run_id, before = await told(services, client)
    outage = Outage(services, waits=3)
    hearing = Hearing(services.database, services.clock, services.hub, wait=outage.wait)
    hearing.heard(run_id, {"kind": "progress", "ended": 1})
    assert outage.waits == 0
    hearing.heard(run_id, {"kind": "state", "state": "running"})
    hearing.heard(run_id, {"kind": "level", "level": 1})
    assert outage.waits == 3
    assert (await shown(client, run_id))["state"] == "running"
    assert kinds(services, run_id) == [*before, "state", "level"]


async def test_a_database_that_stays_away_holds_up_a_run_once(client: httpx2.AsyncClient, services: Services) -> None:
    """The first line waits and is lost, the others do not wait; once one comes through, the next waits again."""
    run_id, before = await told(services, client)
    outage = Outage(services, waits=-1)
    hearing = Hearing(services.database, services.clock, services.hub, wait=lambda seconds: outage.wait(seconds))
    hearing.heard(run_id, {"kind": "level", "level": 1})
    waited = outage.waits
    assert waited > 10
    hearing.heard(run_id, {"kind": "level", "level": 2})
    assert outage.waits == waited
    outage.end()
    hearing.heard(run_id, {"kind": "level", "level": 3})
    outage = Outage(services, waits=1)
    hearing.heard(run_id, {"kind": "level", "level": 4})
    assert kinds(services, run_id) == [*before, "level", "level"]


async def test_an_outcome_that_no_disk_takes_is_told(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """The run ends as the process says, not as one that was lost; a file that is there counts for more."""
    for with_file, expected in ((False, "failed"), (True, "completed")):
        run_id = await ask(client)
        services.supervisor.turn()
        child = nursery.latest
        child.run()
        message = "records: cannot be written: No space left on device"
        child.tell("outcome", exit_code=2, storage=True, message=message)
        if with_file:
            child.end()
        child.die(120)
        services.supervisor.turn()
        run = await shown(client, run_id)
        assert run["state"] == expected
        if not with_file:
            assert (run["reason"], run["message"]) == ("storage", message)


def test_a_process_without_room_says_so(tmp_path: Path) -> None:
    """It can write neither results nor its outcome nor its log; the reason comes through its pipe."""
    with ChatServer() as server:
        *_, last = told_without_room({"url": server.url, "num_requests": 1}, tmp_path)
    assert (last["kind"], last["exit_code"], last["storage"]) == ("outcome", 2, True)
    assert "File too large" in last["message"]
    assert str(tmp_path) not in last["message"]


def told_without_room(options: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """What the process of a run tells that may write no byte to any file."""
    order = Order(run_id="r", kind="run", options=options, folder=str(folder), allowed_hosts=["loopback"])
    with (
        Path("/dev/full").open("wb") as log,
        subprocess.Popen(
            (sys.executable, "-m", "loadgen.service.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        return [msgspec.json.decode(line) for line in process.stdout]
