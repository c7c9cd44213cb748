"""What everyday tests do on SQLite, once more on PostgreSQL, where the two differ: JSON, booleans, names."""

import pytest

from tests.service.asking import CAPACITY, found
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.still_clock import StillClock
from tests.service.postgres import PostgreSQL

pytestmark = pytest.mark.slow


async def test_the_whole_service_on_postgresql(
    make: Make, postgresql: PostgreSQL, nursery: Nursery, clock: StillClock
) -> None:
    """Runs are asked for once, found by label and name, measured, kept in a history; schedules fire once; all is
    exported, and taken in by another service."""
    first, second = (make(database=postgresql.fresh()) for _ in range(2))
    async with client_of(first) as client:
        asked = {**a_run(), "name": "nightly %", "labels": {"team": "search"}}
        headers = {"Idempotency-Key": "k"}
        ids = [(await client.post("/v1/runs", json=asked, headers=headers)).json()["id"] for _ in range(2)]
        assert ids[0] == ids[1]
        for query in ({"label": "team=search"}, {"name": "NIGHTLY %"}, {"state": "queued"}, {"target": "127.0.0.1"}):
            assert [each["id"] for each in (await client.get("/v1/runs", params=query)).json()["items"]] == [ids[0]]
        assert (await client.get("/v1/runs", params={"label": "team=ads"})).json()["items"] == []
        first.supervisor.turn()
        nursery.latest.run()
        nursery.latest.tell("progress", ended=1)
        nursery.latest.end(result={"requests_per_s": 1.0})
        first.supervisor.turn()
        assert (await client.get(f"/v1/runs/{ids[0]}")).json()["state"] == "completed"
        for level in (64.0, 64, 64, 64, 20):
            await client.post("/v1/runs", json=CAPACITY)
            first.supervisor.turn()
            nursery.latest.run()
            nursery.latest.end(0, capacity=found(level))
            first.supervisor.turn()
            clock.move(60)
        (series,) = (await client.get("/v1/history/capacity")).json()["items"]
        assert series["latest"]["verdict"] == "regression"
        assert "loadgen_capacity_level" in (await client.get("/metrics")).text
        made = await client.post("/v1/schedules", json={"name": "s", "cron": "0 * * * *", "request": a_run()})
        assert made.status_code == 201, made.text
        clock.move(3600)
        first.scheduler.turn()
        first.scheduler.turn()
        firings = (await client.get(f"/v1/schedules/{made.json()['id']}/firings")).json()["items"]
        assert [each["outcome"] for each in firings] == ["run"]
        key = await client.post("/v1/keys", json={"name": "a", "scope": "admin"})
        admin = {"Authorization": f"Bearer {key.json()['key']}"}
        document = (await client.get("/v1/export", headers=admin)).json()
    async with client_of(second) as client:
        added = (await client.post("/v1/import", json=document)).json()
        assert (added["runs"]["added"], added["history"]["added"], added["schedules"]["added"]) == (6, 5, 1)
