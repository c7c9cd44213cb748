"""What is kept, for how long, and how it moves to another service."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loadgen.service.files import RunFiles
from loadgen.service.problems import Problem
from loadgen.service.retention import EVERY_S, Retention
from loadgen.service.services import Services
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.still_clock import StillClock


async def complete(client: httpx2.AsyncClient, services: Services, nursery: Nursery) -> str:
    """A run that has gone through."""
    run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.tell("progress", ended=1)
    (nursery.latest.folder / "out" / "measured" / "manifest.json").write_text("{}")
    nursery.latest.end(result={"requests_per_s": 1.0})
    services.supervisor.turn()
    return run_id


async def test_files_go_after_their_time_and_figures_stay(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """Of a run past its time the folder is removed; the run is shown, without files. A baseline keeps its own."""
    old, baseline = [await complete(client, services, nursery) for _ in range(2)]
    made = await client.post("/v1/baselines", json={"name": "b", "run_id": baseline})
    assert made.status_code == 201, made.text
    retention = Retention(services.database, clock, services.runs.folder, 3600.0)
    retention.turn()
    assert (services.runs.folder / old).is_dir()
    clock.move(EVERY_S + 3600)
    young = await complete(client, services, nursery)
    retention.turn()
    left = {path.name for path in services.runs.folder.iterdir()}
    assert left == {baseline, young}
    shown = (await client.get(f"/v1/runs/{old}")).json()
    assert (shown["files_removed"], shown["result"]) == (True, {"requests_per_s": 1.0})
    assert (await client.get(f"/v1/runs/{old}/records")).status_code == 404
    assert (await client.get(f"/v1/runs/{young}/files")).json()["items"]


async def test_a_calendar_that_is_set_ahead_removes_nothing(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """Of five hours one must have lived through five, whatever the calendar says meanwhile, at a new start as well."""

    def retention() -> Retention:
        return Retention(services.database, clock, services.runs.folder, 5 * 3600.0)

    run_id = await complete(client, services, nursery)
    first = retention()
    for _ in range(2):
        first.turn()
        clock.move(EVERY_S)
    clock.set("2027-03-02T12:00:00")
    for each in (first, retention()):
        each.turn()
        assert (services.runs.folder / run_id).is_dir()
    for _ in range(2):
        clock.move(EVERY_S)
        first.turn()
        assert (services.runs.folder / run_id).is_dir()
    clock.move(EVERY_S)
    first.turn()
    assert not (services.runs.folder / run_id).exists()


async def test_everything_moves_to_another_service(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, make: Make, tmp_path: Path
) -> None:
    """Runs, schedules and baselines come over once; schedules paused, runs without files, keys not at all."""
    run_id = await complete(client, services, nursery)
    await client.post("/v1/baselines", json={"name": "b", "run_id": run_id})
    schedule = {"name": "nightly", "cron": "0 2 * * *", "request": a_run()}
    await client.post("/v1/schedules", json=schedule)
    await client.post("/v1/runs", json=a_run())  # waits, and stays here
    document = (await client.get("/v1/export")).json()
    assert "keys" not in document
    other = make(data_dir=tmp_path / "other")
    async with client_of(other) as there:
        first = (await there.post("/v1/import", json=document)).json()
        assert {name: count["added"] for name, count in first.items()} == {
            "runs": 1,
            "history": 0,
            "schedules": 1,
            "baselines": 1,
            "webhooks": 0,
        }
        again = (await there.post("/v1/import", json=document)).json()
        assert all(count["added"] == 0 for count in again.values())
        assert [item["id"] for item in (await there.get("/v1/runs")).json()["items"]] == [run_id]
        (moved,) = (await there.get("/v1/schedules")).json()["items"]
        assert (moved["name"], moved["paused"]) == ("nightly", True)
        document["runs"][0]["state"] = "running"
        document["runs"][0]["id"] = "another"
        assert (await there.post("/v1/import", json=document)).status_code == 422
        assert (await there.post("/v1/import", json={**document, "runs": [{"id": 3}]})).status_code == 422


@pytest.mark.parametrize(
    ("table", "field", "value"),
    [
        ("runs", "kind", "walk"),
        ("runs", "created_unix_ms", 2**70),
        ("runs", "ended_unix_ms", 2**60),
        ("runs", "name", "a\0b"),
        ("runs", "reason", "r" * 201),
        ("runs", "labels", ["a"]),
        ("runs", "time_limit_s", float("inf")),
        ("schedules", "cron", "61 * * * *"),
        ("schedules", "time_zone", "Mars/Olympus"),
        ("schedules", "request", {"kind": "run"}),
        ("baselines", "kind", 3),
        ("baselines", "gates", [3]),
    ],
)
async def test_what_lists_could_not_show_is_not_taken_in(
    client: httpx2.AsyncClient,
    services: Services,
    nursery: Nursery,
    make: Make,
    tmp_path: Path,
    table: str,
    field: str,
    value: Any,
) -> None:
    """One row that is nothing would take all others with it: the whole document is refused, with its place."""
    run_id = await complete(client, services, nursery)
    await client.post("/v1/baselines", json={"name": "b", "run_id": run_id})
    await client.post("/v1/schedules", json={"name": "nightly", "cron": "0 2 * * *", "request": a_run()})
    document = (await client.get("/v1/export")).json()
    document[table][0][field] = value
    async with client_of(make(data_dir=tmp_path / "other")) as there:
        answer = await there.post(
            "/v1/import", content=json.dumps(document), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 422, answer.text
        for path in ("/v1/runs", "/v1/schedules", "/v1/baselines", "/v1/webhooks"):
            assert (await there.get(path)).json()["items"] == []


async def test_a_document_that_is_too_large_says_how_to_take_it_in(make: Make) -> None:
    """What a service exports grows with its years, beyond what a body may be by default."""
    async with client_of(make(max_body=100)) as client:
        answer = await client.post("/v1/import", json={"schema": "x" * 100})
    assert (answer.status_code, "--max-body" in answer.json()["detail"]) == (413, True)


@pytest.mark.slow
def test_comparisons_do_not_take_every_thread(tmp_path: Path) -> None:
    """Where enough of them wait the next one is told to come again; a place that is left can be taken."""
    run = {"id": "a", "artefact": "measured", "files_removed": False}
    (tmp_path / "a" / "out" / "measured").mkdir(parents=True)
    with pytest.raises(Problem) as full:
        RunFiles(tmp_path, room=0).compared(run, run)
    assert (full.value.status, full.value.headers["Retry-After"]) == (503, "5")
    files = RunFiles(tmp_path, aside=1, room=1)
    for _ in range(2):
        with pytest.raises(Problem, match="cannot be compared") as ended:
            files.compared(run, run)
        assert ended.value.status == 409


async def test_files_of_a_run_are_those_beneath_it(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """Each by its name, all as an archive, and nothing beside them."""
    run_id = await complete(client, services, nursery)
    listed = (await client.get(f"/v1/runs/{run_id}/files")).json()["items"]
    assert listed == [{"name": "manifest.json", "bytes": 2}]
    assert (await client.get(f"/v1/runs/{run_id}/files/manifest.json")).text == "{}"
    archive = await client.get(f"/v1/runs/{run_id}/archive")
    assert b"measured/manifest.json" in archive.content
    for name in ("../../outcome.json", "..%2f..%2foutcome.json", "/etc/passwd", "%2e%2e/%2e%2e/started", "0" * 300):
        answer = await client.get(f"/v1/runs/{run_id}/files/{name}")
        assert answer.status_code in (404, 422)
        assert answer.headers["content-type"] == "application/problem+json"
