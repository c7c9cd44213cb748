"""Schedules in virtual time: due once each, through daylight saving, lost hours, clocks that are set, busy servers."""

from datetime import UTC, datetime
from itertools import islice

import httpx2
import pytest
from sqlalchemy import update

from loadgen.core.errors import ConfigError
from loadgen.service.schedules import store
from loadgen.service.schedules.cron import Timetable
from loadgen.service.services import Services
from loadgen.service.store import named
from loadgen.service.store.tables import schedules
from tests.service.asking import make_schedule
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.still_clock import StillClock


def instant(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def texts(instants: list[int]) -> list[str]:
    return [datetime.fromtimestamp(each / 1000, tz=UTC).strftime("%m-%dT%H:%M") for each in instants]


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        ("30 2 * * *", "UTC", "2026-03-02T02:30:00", ["03-03T02:30", "03-04T02:30"]),
        # Berlin's clocks go from 2:00 to 3:00 on 29 March: what is due at 2:30 is due when that hour is skipped
        ("30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
        # and from 3:00 back to 2:00 on 25 October: 2:30 comes twice, and is due once
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00", ["10-25T00:30", "10-26T01:30"]),
        # what is due every hour is due in both of them
        ("30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00", ["10-25T00:30", "10-25T01:30", "10-25T02:30"]),
        # half an hour on Lord Howe
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-02T20:00:00", ["10-03T15:30", "10-04T15:15"]),
        ("0 9 * * 1-5", "America/New_York", "2026-03-06T20:00:00", ["03-09T13:00", "03-10T13:00"]),
        ("0 0 29 2 *", "UTC", "2026-03-01T00:00:00", ["02-29T00:00"]),
    ],
)
def test_when_a_timetable_is_due(cron: str, zone: str, after: str, expected: list[str]) -> None:
    """By the calendar of its zone, through every change of its clocks."""
    assert texts(list(islice(Timetable(cron, zone).after(instant(after)), len(expected)))) == expected


@pytest.mark.parametrize(
    ("cron", "zone"),
    [("* * * *", "UTC"), ("* * * * * *", "UTC"), ("61 * * * *", "UTC"), ("0 0 31 2 *", "UTC"), ("@daily", "UTC")]
    + [("0 0 * * *", zone) for zone in ("Mars/Olympus", "", "../../etc/passwd", "Europe")],
)
def test_what_is_no_timetable(cron: str, zone: str) -> None:
    """Is refused with what was expected, also when it could never be due."""
    with pytest.raises(ConfigError, match=r"^(cron|time_zone): "):
        Timetable(cron, zone).check(instant("2026-03-02T12:00:00"))


async def outcomes(client: httpx2.AsyncClient, schedule_id: str) -> list[tuple[str, str]]:
    items = (await client.get(f"/v1/schedules/{schedule_id}/firings")).json()["items"]
    return [(item["due_at"][5:16], item["outcome"]) for item in reversed(items)]


def live(services: Services, clock: StillClock, seconds: float, *, step_s: float = 30.0) -> None:
    """Time goes by, and the service looks again and again."""
    for _ in range(round(seconds / step_s)):
        clock.move(step_s)
        services.scheduler.turn()


async def test_each_instant_leads_to_one_run(
    client: httpx2.AsyncClient, services: Services, clock: StillClock, nursery: Nursery
) -> None:
    """Every hour one run, however often the service looks, and each run says which schedule it is of."""
    services.scheduler.turn()
    made = await make_schedule(client, when_busy="queue")
    assert made["next_at"] == "2026-03-02T13:00:00.000Z"
    live(services, clock, 3 * 3600 + 60)
    runs = (await client.get("/v1/runs", params={"schedule_id": made["id"]})).json()["items"]
    assert len(runs) == 3
    assert await outcomes(client, made["id"]) == [
        ("03-02T13:00", "run"),
        ("03-02T14:00", "run"),
        ("03-02T15:00", "run"),
    ]
    assert {run["created_by"] for run in runs} == {"schedule:nightly"}


async def test_a_busy_server_is_skipped(
    client: httpx2.AsyncClient, services: Services, clock: StillClock, nursery: Nursery
) -> None:
    """While another run uses or waits for the server the schedule passes, says so, and goes on afterwards."""
    services.scheduler.turn()
    await client.post("/v1/runs", json=a_run("http://localhost:8000"))
    services.supervisor.turn()
    made = await make_schedule(client)
    live(services, clock, 3600 + 60)
    nursery.latest.run()
    nursery.latest.end()
    services.supervisor.turn()
    live(services, clock, 3600)
    assert await outcomes(client, made["id"]) == [("03-02T13:00", "busy"), ("03-02T14:00", "run")]


async def test_hours_that_nobody_was_there_for(make: Make, clock: StillClock) -> None:
    """After hours without a service what is within its grace is made up for once, all else is missed."""
    first = make()
    async with client_of(first) as client:
        made = await make_schedule(client, misfire_grace_s=1800)
        clock.move(4 * 3600 + 600)  # 16:10
        second = make()
        second.scheduler.turn()
        second.scheduler.turn()
        assert await outcomes(client, made["id"]) == [
            ("03-02T13:00", "missed"),
            ("03-02T14:00", "missed"),
            ("03-02T15:00", "missed"),
            ("03-02T16:00", "run"),
        ]
        clock.move(3 * 3600 + 2400)  # 19:50: beyond the grace of 19:00
        second.scheduler.turn()
        assert (await outcomes(client, made["id"]))[-1] == ("03-02T19:00", "missed")
        assert len((await client.get("/v1/runs")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("before", "after", "decided"),
    [("run", "run", False), ("busy", "run", False), ("run", "missed", False), ("missed", "run", True)],
)
def test_an_instant_is_decided_once(make: Make, clock: StillClock, before: str, after: str, decided: bool) -> None:
    """Whatever became of it stays, but for one that was only missed, by a clock that was ahead."""
    database = make().database
    with database.write() as connection:
        now = clock.now_unix_ms()
        assert named.add(
            connection,
            schedules,
            id="s",
            name="s",
            cron="0 * * * *",
            time_zone="UTC",
            request={},
            misfire_grace_s=0.0,
            when_busy="skip",
            paused=False,
            created_by="t",
            created_unix_ms=now,
        )
        assert store.decide(connection, "s", now, before, now)
        assert store.decide(connection, "s", now, after, now) is decided
        (row,) = store.decided(connection, "s", 10)
    assert row["outcome"] == (after if decided else before)


async def test_two_services_fire_once(make: Make, clock: StillClock) -> None:
    """However many services look at one database, an instant leads to one run."""
    services = [make() for _ in range(3)]
    async with client_of(services[0]) as client:
        await make_schedule(client)
        clock.move(3600)
        for each in services:
            each.scheduler.turn()
        assert len((await client.get("/v1/runs")).json()["items"]) == 1


async def test_a_clock_that_is_set_forward_and_back(
    client: httpx2.AsyncClient, services: Services, clock: StillClock
) -> None:
    """A year ahead fires once at most; set back again the schedule goes on, and no instant fires twice."""
    services.scheduler.turn()
    made = await make_schedule(client, when_busy="queue", misfire_grace_s=600)
    live(services, clock, 3600)
    clock.set("2027-03-02T13:30:00")
    services.scheduler.turn()
    clock.set("2026-03-02T12:50:00")
    services.scheduler.turn()
    live(services, clock, 2 * 3600)
    fired = [due for due, outcome in await outcomes(client, made["id"]) if outcome == "run"]
    assert fired == ["03-02T13:00", "03-02T14:00"]
    assert len((await client.get("/v1/runs")).json()["items"]) == 2


async def test_a_clock_that_was_set_back_while_nobody_was_there(make: Make, clock: StillClock) -> None:
    """What was planned a year ahead is planned anew at the start, by the clock as it is now."""
    clock.set("2027-03-02T12:00:00")
    async with client_of(make()) as client:
        made = await make_schedule(client)
        assert made["next_at"] == "2027-03-02T13:00:00.000Z"
        clock.set("2026-03-02T12:00:00")
        make().scheduler.turn()
        assert (await client.get(f"/v1/schedules/{made['id']}")).json()["next_at"] == "2026-03-02T13:00:00.000Z"


async def test_one_that_cannot_be_fired_holds_up_no_other(
    client: httpx2.AsyncClient, services: Services, clock: StillClock
) -> None:
    """When a time zone is not known any more the schedules behind it still lead to their runs."""
    for name in ("a", "b"):
        await make_schedule(client, name=name)
    services.scheduler.turn()
    with services.database.write() as connection:
        connection.execute(update(schedules).where(schedules.c.name == "a").values(time_zone="Mars/Olympus"))
    clock.move(3600)
    services.scheduler.turn()
    (run,) = (await client.get("/v1/runs")).json()["items"]
    assert run["created_by"] == "schedule:b"


async def test_a_paused_schedule_is_not_due(client: httpx2.AsyncClient, services: Services, clock: StillClock) -> None:
    """What goes by while it is paused is not made up for; it goes on with the next instant."""
    services.scheduler.turn()
    made = await make_schedule(client)
    paused = (await client.post(f"/v1/schedules/{made['id']}/pause")).json()
    assert (paused["paused"], paused["next_at"]) == (True, None)
    live(services, clock, 2 * 3600 + 300)
    resumed = (await client.post(f"/v1/schedules/{made['id']}/resume")).json()
    assert resumed["next_at"] == "2026-03-02T15:00:00.000Z"
    services.scheduler.turn()
    assert await outcomes(client, made["id"]) == []


async def test_run_now_beside_the_timetable(client: httpx2.AsyncClient, services: Services, clock: StillClock) -> None:
    """It leads to a run at once and leaves the next instant where it was."""
    made = await make_schedule(client)
    asked = await client.post(f"/v1/schedules/{made['id']}/run")
    assert (asked.status_code, asked.json()["schedule_id"]) == (202, made["id"])
    assert (await client.get(f"/v1/schedules/{made['id']}")).json()["next_at"] == made["next_at"]


async def test_a_request_that_is_not_allowed_any_more_is_refused_and_said(make: Make, clock: StillClock) -> None:
    """The schedule goes on; the instant is written down as refused, and nothing is sent."""
    before = make(allow_host=["10.0.0.0/8"])
    async with client_of(before) as client:
        made = await make_schedule(client, request=a_run("http://10.0.0.7:8000"))
    after = make()
    clock.move(3600)
    after.scheduler.turn()
    async with client_of(after) as client:
        assert await outcomes(client, made["id"]) == [("03-02T13:00", "refused")]
        assert (await client.get(f"/v1/schedules/{made['id']}")).json()["next_at"] == "2026-03-02T14:00:00.000Z"


async def test_a_schedule_does_not_queue_beyond_what_may_wait(make: Make, clock: StillClock) -> None:
    """Its instant is refused, and so is its run at once; the next instant comes all the same."""
    services = make(max_queued=1)
    async with client_of(services) as client:
        services.scheduler.turn()
        made = await make_schedule(client, when_busy="queue")
        live(services, clock, 2 * 3600)
        assert await outcomes(client, made["id"]) == [("03-02T13:00", "run"), ("03-02T14:00", "refused")]
        assert (await client.post(f"/v1/schedules/{made['id']}/run")).status_code == 429
        (run,) = (await client.get("/v1/runs")).json()["items"]
        await client.post(f"/v1/runs/{run['id']}/cancel")
        live(services, clock, 3600)
        assert (await outcomes(client, made["id"]))[-1] == ("03-02T15:00", "run")


async def test_schedules_are_made_changed_and_removed(client: httpx2.AsyncClient) -> None:
    """A name is there once; what is wrong is said by field, also within the request; changes are in the audit log."""
    made = await make_schedule(client)
    body = {"name": "nightly", "cron": "0 * * * *", "request": a_run()}
    assert (await client.post("/v1/schedules", json=body)).status_code == 409
    for wrong, pointer in (
        ({"cron": "61 * * * *"}, "/cron"),
        ({"time_zone": "Mars"}, "/time_zone"),
        ({"request": a_run("http://10.0.0.7:8000")}, "/target/url"),
        ({"request": a_run(concurrency="x")}, "/options/concurrency"),
    ):
        answer = await client.post("/v1/schedules", json={**body, "name": "other", **wrong})
        assert answer.status_code in (403, 422)
        assert answer.json()["errors"][0]["pointer"] == pointer
    changed = await client.put(f"/v1/schedules/{made['id']}", json={**body, "cron": "15 3 * * *"})
    assert changed.json()["next_at"] == "2026-03-03T03:15:00.000Z"
    assert changed.json()["words"] == "At 03:15 every day"
    assert (await client.delete(f"/v1/schedules/{made['id']}")).status_code == 204
    assert (await client.get(f"/v1/schedules/{made['id']}")).status_code == 404
    actions = [item["action"] for item in (await client.get("/v1/audit")).json()["items"]]
    assert actions == ["schedule.remove", "schedule.change", "schedule.make"]


async def test_due_times_before_there_is_a_schedule(client: httpx2.AsyncClient) -> None:
    """A timetable is explained in words and instants, in UTC and by its own clocks."""
    told = (await client.post("/v1/schedules/check", json={"cron": "30 2 * * *", "time_zone": "Europe/Berlin"})).json()
    assert told["items"][0] == "2026-03-03T01:30:00.000Z"
    assert told["local"][0] == "2026-03-03T02:30+01:00"
