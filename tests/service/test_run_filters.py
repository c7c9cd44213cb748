"""Which runs a list shows: by server and by when they were asked for."""

import httpx2

from tests.service.conftest import a_run
from tests.service.fakes.still_clock import StillClock


async def test_runs_are_found_by_a_part_of_their_server(client: httpx2.AsyncClient) -> None:
    """Of its URL, whatever the case of letters; wild cards are letters."""
    for url in ("http://127.0.0.1:8000", "http://localhost:9000"):
        assert (await client.post("/v1/runs", json=a_run(url))).status_code == 202
    for part, urls in (
        ("LOCAL", ["http://localhost:9000"]),
        ("127.0", ["http://127.0.0.1:8000"]),
        ("%", []),
        ("_", []),
    ):
        found = (await client.get("/v1/runs", params={"target": part})).json()["items"]
        assert [run["target"]["url"] for run in found] == urls


async def test_runs_are_found_by_when_they_were_asked_for(client: httpx2.AsyncClient, clock: StillClock) -> None:
    """From the first instant on, and before the second one."""
    created = []
    for _ in range(3):
        created.append((await client.post("/v1/runs", json=a_run())).json()["created_at"])
        clock.move(60)
    found = (await client.get("/v1/runs", params={"since": created[1], "until": created[2]})).json()["items"]
    assert [run["created_at"] for run in found] == [created[1]]
    answer = await client.get("/v1/runs", params={"since": "yesterday"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "query:since")


async def test_a_gate_that_is_none_is_said_before_anything_is_compared(client: httpx2.AsyncClient) -> None:
    """With its place among the gates."""
    params = {"baseline": "a", "candidate": "b", "gate": ["tpot_s.p99 > 1.05x", "tpot is bad"]}
    answer = await client.get("/v1/compare", params=params)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "query:gate.1")
