"""Several real services on one PostgreSQL and one data folder: a server has one run at a time, no run is done twice,
an instant of a schedule leads to one run, and when one of them is killed the others go on with what it had."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import select, text, update

from loadgen.adapters.launch.orphans import identity_of
from loadgen.service.jobs.recovery import adopt
from loadgen.service.store.database import Database
from loadgen.service.store.tables import leases, runs, schedules
from loadgen.sim.child import ChildServer
from tests.service.asking import ask
from tests.service.conftest import Make, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.house import House, check_kept, reached, service, simulator
from tests.service.postgres import PostgreSQL

pytestmark = pytest.mark.slow

HOUSES = 3
SHORT = {"concurrency": 1, "num_requests": 3, "output_tokens": "4"}
LONG = {"concurrency": 2, "duration": "120s", "output_tokens": "16"}
_DUE_S, _LOCK_S = 90.0, 20.0


@dataclass(slots=True, kw_only=True)
class Street:
    """Services that share a database and a data folder."""

    database: str
    data: Path
    houses: list[House]

    def owners(self) -> set[str]:
        """Services that took a run."""
        database = Database(self.database)
        with database.read() as connection:
            found = set(connection.execute(select(runs.c.owner)).scalars())
        database.close()
        return found

    def bring_forward(self) -> None:
        """All schedules are next due in two seconds, at one instant: nobody waits for a minute to begin."""
        database = Database(self.database)
        with database.write() as connection:
            connection.execute(update(schedules).values(next_unix_ms=time.time_ns() // 10**6 + 2_000))
        database.close()


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL) -> Iterator[Street]:
    """All of them start at the same time, on an empty database."""
    database, data = postgresql.fresh(), tmp_path_factory.mktemp("street") / "data"
    with ExitStack() as stack, ThreadPoolExecutor(HOUSES) as pool:
        starting = [service(data, "--database", database) for _ in range(HOUSES)]
        yield Street(database=database, data=data, houses=list(pool.map(stack.enter_context, starting)))


@pytest.fixture(scope="module")
def targets() -> Iterator[list[ChildServer]]:
    with simulator("--speed", "4") as one, simulator("--speed", "4") as other:
        yield [one, other]


def answered(target: ChildServer) -> float:
    """Requests that the server has answered."""
    page = httpx2.get(f"{target.url}/metrics").text
    return sum(float(found) for found in re.findall(r"^vllm:request_success_total\{[^}]*\} (\S+)", page, re.MULTILINE))


def states(house: House, run_id: str) -> dict[str, str]:
    """When a run came into each state. It comes into none twice."""
    told = re.findall(r"^event: state\ndata: (.*)$", house.events(run_id), re.MULTILINE)
    events = [json.loads(each) for each in told]
    found = {event["state"]: event["at"] for event in events}
    assert len(found) == len(events), events
    return found


def check_one_after_the_other(house: House, run_ids: list[str]) -> None:
    """Each run of the server began after the load of the one before it was over."""
    times = sorted((states(house, run_id) for run_id in run_ids), key=lambda at: at["starting"])
    for before, behind in pairwise(times):
        assert before["finishing"] <= behind["starting"], (before, behind)


def test_runs_are_shared_out_and_none_is_done_twice(street: Street, targets: list[ChildServer]) -> None:
    """Asked for at any of them, done by several of them, and the servers have seen each request once."""
    before = [answered(target) for target in targets]
    asked: list[list[str]] = [[], []]
    for place in range(10):
        asked[place % 2].append(street.houses[place % HOUSES].ask(targets[place % 2].url, **SHORT))
    house = street.houses[0]
    ended = [house.ended(run_id) for run_ids in asked for run_id in run_ids]
    assert {(run["state"], run["exit_code"]) for run in ended} == {("completed", 0)}, ended
    assert len(street.owners()) > 1
    for target, run_ids, count in zip(targets, asked, before, strict=True):
        check_one_after_the_other(house, run_ids)
        assert answered(target) - count == len(run_ids) * SHORT["num_requests"]


def test_an_instant_fires_once(street: Street, targets: list[ChildServer]) -> None:
    """Six schedules are due at the same time, and every service looks: each instant has its one run."""
    made = []
    for place in range(6):
        request = {"kind": "run", "target": {"url": targets[place % 2].url}, "options": SHORT}
        body = {"name": f"s{place}", "cron": "0 0 1 1 *", "request": request, "when_busy": "queue"}
        answer = street.houses[place % HOUSES].client.post("/v1/schedules", json=body)
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["id"])
    street.bring_forward()
    client = street.houses[0].client

    def fired(schedule_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.get(f"/v1/schedules/{schedule_id}/firings").json()["items"]
        return found

    deadline_s = time.monotonic() + _DUE_S
    while not all(map(fired, made)):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    for schedule_id in made:
        firings = fired(schedule_id)
        led = client.get("/v1/runs", params={"schedule_id": schedule_id}).json()["items"]
        assert [each["outcome"] for each in firings] == ["run"]
        assert [each["run_id"] for each in firings] == [run["id"] for run in led]
        assert {street.houses[0].ended(run["id"])["state"] for run in led} == {"completed"}


def test_one_is_killed_and_another_goes_on(street: Street, targets: list[ChildServer]) -> None:
    """At the end of this file: the run that it had keeps what it measured and is done by nobody else; the one behind it
    begins once the server is free."""
    first = street.houses[0].ask(targets[0].url, **LONG)
    before = street.houses[0].wait(first, lambda run: reached("running", run))
    behind = street.houses[1].ask(targets[0].url, **SHORT)
    killed = next(house for house in street.houses if house.child() is not None)
    child = killed.child()
    assert child is not None
    killed.kill()
    left = next(house for house in street.houses if house is not killed)
    run = left.ended(first)
    assert (run["state"], run["reason"]) == ("interrupted", "service_lost"), run
    assert left.ended(behind)["state"] == "completed"
    check_kept(street.data, left, first, before)
    assert identity_of(child) is None
    assert run["ended_at"] <= states(left, behind)["starting"]


async def test_the_second_of_two_at_once_waits_and_sees_whose_it_is(
    make: Make, nursery: Nursery, postgresql: PostgreSQL
) -> None:
    """Writers of PostgreSQL do not wait before they begin: who adopts a run that is being adopted waits for its row."""
    lost = make(database=postgresql.fresh())
    async with client_of(lost) as client:
        run_id = await ask(client)
    lost.supervisor.turn()
    before, database = lost.supervisor.owner, lost.database

    def late() -> object:
        with database.write() as connection:
            return adopt(connection, run_id, before=before, owner="late")

    with ThreadPoolExecutor(1) as pool:
        with database.write() as connection:
            assert adopt(connection, run_id, before=before, owner="first") is not None
            other = pool.submit(late)
            until_somebody_waits(database)
        assert other.result(_LOCK_S) is None
    with database.read() as connection:
        assert connection.execute(select(runs.c.owner)).scalars().all() == ["first"]
        assert set(connection.execute(select(leases.c.owner)).scalars()) == {"first"}


def until_somebody_waits(database: Database) -> None:
    """For what another transaction holds."""
    deadline_s = time.monotonic() + _LOCK_S
    waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    while True:
        with database.read() as connection:
            if connection.execute(waiting).scalar_one():
                return
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
