"""Runs through the API: asked for, listed, cancelled; what is wrong is said by field."""

import httpx2
import pytest
import typer

from loadgen.cli.app import build_app
from loadgen.service.idempotency import REMEMBERED_MS
from loadgen.service.services import Services
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.still_clock import StillClock


async def test_a_run_is_queued_and_shown(client: httpx2.AsyncClient) -> None:
    """The answer says where the run is, and the run waits with nothing before it."""
    answer = await client.post("/v1/runs", json={**a_run(), "name": "first", "labels": {"team": "search"}})
    assert answer.status_code == 202
    shown = (await client.get(answer.headers["location"])).json()
    assert (shown["state"], shown["name"], shown["labels"]) == ("queued", "first", {"team": "search"})
    assert shown["waiting"] == {"position": 0, "runs": []}
    assert shown["options"] == {"concurrency": 2, "num_requests": 10}


async def test_the_queue_says_what_a_run_waits_for(client: httpx2.AsyncClient, clock: StillClock) -> None:
    """A run waits for those before it that need its server, by whatever name, and for no others."""
    ids = []
    for url in ("http://127.0.0.1:8000", "http://127.0.0.1:9000", "http://localhost:8000/v1"):
        ids.append((await client.post("/v1/runs", json=a_run(url))).json()["id"])
        clock.move(1)
    waiting = (await client.get(f"/v1/runs/{ids[2]}")).json()["waiting"]
    assert waiting == {"position": 2, "runs": [ids[0]]}


async def test_the_same_key_is_the_same_run(client: httpx2.AsyncClient) -> None:
    """Asked twice with one Idempotency-Key there is one run; another body with it is refused."""
    headers = {"Idempotency-Key": "abc"}
    first, second = [await client.post("/v1/runs", json=a_run(), headers=headers) for _ in range(2)]
    assert first.json()["id"] == second.json()["id"]
    assert second.status_code == 202
    other = await client.post("/v1/runs", json=a_run(concurrency=3), headers=headers)
    assert other.status_code == 422
    assert len((await client.get("/v1/runs")).json()["items"]) == 1


async def test_a_key_means_its_run_for_a_week(client: httpx2.AsyncClient, clock: StillClock) -> None:
    """Who asks every week with the same word gets a run every week."""
    headers = {"Idempotency-Key": "weekly"}
    first = (await client.post("/v1/runs", json=a_run(), headers=headers)).json()["id"]
    clock.move(REMEMBERED_MS / 1000 + 1)
    second = await client.post("/v1/runs", json=a_run(concurrency=3), headers=headers)
    assert second.status_code == 202
    assert second.json()["id"] != first


async def test_so_many_runs_wait_and_no_more(make: Make) -> None:
    """The next one is told to come later, unless it is one of them asked for again; a run that leaves makes room."""
    async with client_of(make(max_queued=2)) as client:
        once = {"Idempotency-Key": "a"}
        first, second = [await client.post("/v1/runs", json=a_run(), headers=each) for each in (once, {})]
        full = await client.post("/v1/runs", json=a_run(), headers={"Idempotency-Key": "b"})
        assert (full.status_code, full.json()["type"]) == (429, "urn:loadgen:problem:queue-full")
        assert full.headers["Retry-After"] == "60"
        assert (await client.post("/v1/runs", json=a_run(), headers=once)).json()["id"] == first.json()["id"]
        assert len((await client.get("/v1/runs")).json()["items"]) == 2
        await client.post(f"/v1/runs/{second.json()['id']}/cancel")
        again = await client.post("/v1/runs", json=a_run(), headers={"Idempotency-Key": "b"})
        assert again.status_code == 202


async def test_pages_hold_every_run_once(client: httpx2.AsyncClient, clock: StillClock) -> None:
    """Walking the cursor gives all runs, the newest first, none twice, though runs are added meanwhile."""
    asked = []
    for number in range(5):
        asked.append((await client.post("/v1/runs", json={**a_run(), "name": f"n{number}"})).json()["id"])
        clock.move(0.5 * (number % 2))  # some in the same millisecond
    seen: list[str] = []
    cursor = None
    while True:
        page = (await client.get("/v1/runs", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [item["id"] for item in page["items"]]
        clock.move(1)
        await client.post("/v1/runs", json={**a_run(), "name": "later"})
        cursor = page["next"]
        if cursor is None:
            break
    assert sorted(seen) == sorted(asked)
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"name": "nigh"}, ["nightly"]),
        ({"name": "%"}, []),
        ({"label": "team=search"}, ["nightly"]),
        ({"label": "team=ads"}, []),
        ({"kind": "sweep"}, []),
        ({"state": "queued"}, ["other", "nightly"]),
        ({"state": "failed"}, []),
    ],
)
async def test_runs_are_found_by_what_they_are(
    client: httpx2.AsyncClient, clock: StillClock, filters: dict[str, str], names: list[str]
) -> None:
    """A filter leaves only the runs that it names; a wildcard of SQL is an ordinary letter."""
    await client.post("/v1/runs", json={**a_run(), "name": "nightly", "labels": {"team": "search"}})
    clock.move(1)
    await client.post("/v1/runs", json={**a_run(), "name": "other"})
    page = (await client.get("/v1/runs", params=filters)).json()
    assert [item["name"] for item in page["items"]] == names


async def test_a_waiting_run_is_cancelled_at_once(client: httpx2.AsyncClient) -> None:
    """It ends as cancelled, its events say so, and a second time there is nothing to cancel."""
    run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
    assert (await client.post(f"/v1/runs/{run_id}/cancel")).json()["state"] == "cancelled"
    again = await client.post(f"/v1/runs/{run_id}/cancel")
    assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")
    events = (await client.get(f"/v1/runs/{run_id}/events")).text
    assert '"state": "cancelled"' in events or '"state":"cancelled"' in events
    assert "event: end" in events


async def test_events_go_on_where_a_reader_was(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """With Last-Event-ID come the events behind it and no other, from the store, each with its number."""
    run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
    services.supervisor.turn()
    nursery.latest.run()
    for number in range(3):
        nursery.latest.tell("progress", ended=number)
    nursery.latest.end()
    services.supervisor.turn()
    whole = _ids((await client.get(f"/v1/runs/{run_id}/events")).text)
    assert whole == list(range(1, len(whole) + 1))
    rest = await client.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": "4"})
    assert _ids(rest.text) == whole[4:]
    assert (await client.get("/v1/runs/nothing/events")).status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({**a_run(), "kind": "walk"}, "/kind"),
        ({**a_run(), "target": {"url": "http://a", "profile": "b"}}, "/target"),
        ({**a_run(), "options": {"concurrency": "many"}}, "/options/concurrency"),
        ({**a_run(), "options": {"no_such": 1}}, "/options/no_such"),
        ({**a_run(), "options": {"request_rate": 3, "concurrency": 2}}, "/options"),
        ({**a_run(), "options": {"out": "/tmp"}}, "/options/out"),
        ({**a_run(), "options": {"proxy": "http://127.0.0.1:1"}}, "/options/proxy"),
        ({**a_run(), "options": {"prometheus_port": "9000"}}, "/options/prometheus_port"),
        ({**a_run(), "options": {"header": {"X-A": "b\r\nX-Evil: 1"}}}, "/options/header"),
        (
            {**a_run(), "options": {"header": {"Authorization": "Bearer abcdefgh12345678"}}},
            "/options/header/Authorization",
        ),
        ({**a_run(), "target": {"url": "http://user:password@127.0.0.1:8000"}}, "/target/url"),
        ({**a_run(), "name": "a\nb"}, "/name"),
        ({**a_run(), "labels": {"a b": "c"}}, "/labels"),
        ({**a_run(), "surplus": 1}, "/surplus"),
        ({"kind": "run", "options": {}}, ""),
        ({**a_run(), "baseline_id": "nothing"}, "/baseline_id"),
    ],
)
async def test_what_is_wrong_is_named(client: httpx2.AsyncClient, body: dict[str, object], pointer: str) -> None:
    """The problem points at the field, and nothing is queued."""
    answer = await client.post("/v1/runs", json=body)
    problem = answer.json()
    assert answer.status_code == 422, problem
    assert problem["type"] == "urn:loadgen:problem:invalid-request"
    assert any(error["pointer"].startswith(pointer) for error in problem["errors"]), problem
    assert (await client.get("/v1/runs")).json()["items"] == []


async def test_an_experiment_is_a_run_of_its_kind(client: httpx2.AsyncClient) -> None:
    """What its file would hold is validated as that, and it is listed among experiments."""
    options = {
        "name": "pays",
        "workload": {"synthetic": {"input_tokens": 64, "output_tokens": 16}},
        "load": {"concurrency": [1]},
        "level": {"num_requests": 20},
        "arms": {"baseline": {"url": "http://127.0.0.1:8000"}, "eagle": {"url": "http://127.0.0.1:8001"}},
    }
    made = await client.post("/v1/experiments", json={"name": "pays", "options": options})
    assert made.status_code == 202, made.text
    assert [item["id"] for item in (await client.get("/v1/experiments")).json()["items"]] == [made.json()["id"]]
    wrong = await client.post("/v1/experiments", json={"options": {**options, "baseline": "no"}})
    assert wrong.json()["errors"][0]["pointer"] == "/options/baseline"


async def test_bodies_have_a_limit_and_are_json(client: httpx2.AsyncClient) -> None:
    """A large body and one of another kind end before they are looked at."""
    large = await client.post("/v1/runs", content=b" " * 2_000_000, headers={"Content-Type": "application/json"})
    assert large.status_code == 413
    form = await client.post("/v1/runs", content=b"kind=run", headers={"Content-Type": "text/plain"})
    assert form.status_code == 415
    broken = await client.post("/v1/runs", content=b"{", headers={"Content-Type": "application/json"})
    assert broken.status_code == 422


def _ids(text: str) -> list[int]:
    return [int(line.removeprefix("id: ")) for line in text.splitlines() if line.startswith("id: ")]


@pytest.mark.parametrize("kind", ["run", "sweep", "capacity"])
async def test_options_are_named_as_on_the_command_line(client: httpx2.AsyncClient, kind: str) -> None:
    """Each that is listed is one of the command's, with underscores."""
    listed = (await client.get(f"/v1/options/{kind}")).json()["json_schema"]["properties"]
    command = typer.main.get_command(build_app(kind)).commands[kind]  # type: ignore[attr-defined]
    flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert {"--" + name.replace("_", "-") for name in listed} <= flags
    assert {option["flag"] for option in listed.values()} <= flags


async def test_the_highest_level_of_a_capacity_test(client: httpx2.AsyncClient) -> None:
    """By the name of the command line, and by the one under which stored requests have it."""
    body = {"kind": "capacity", "target": {"url": "http://127.0.0.1:8000"}}
    for name in ("max", "most"):
        low = await client.post("/v1/runs", json={**body, "options": {"slo": "ttft=1s", "start": 8, name: 4}})
        assert low.status_code == 422
        assert low.json()["errors"][0]["detail"] == "start 8 lies above max 4"
