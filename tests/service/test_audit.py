"""The audit log: who changed what, the newest first, page by page, and changes of one kind alone."""

import httpx2

from tests.service.asking import make_schedule


async def some_changes(client: httpx2.AsyncClient) -> str:
    """A schedule that is made, and paused and resumed three times."""
    made = await make_schedule(client)
    for _ in range(3):
        for what in ("pause", "resume"):
            assert (await client.post(f"/v1/schedules/{made['id']}/{what}")).status_code == 200
    schedule_id: str = made["id"]
    return schedule_id


async def test_changes_of_one_kind(client: httpx2.AsyncClient) -> None:
    """Each says who, from where, and of what; a kind that is none is refused."""
    schedule_id = await some_changes(client)
    paused = (await client.get("/v1/audit", params={"action": "schedule.pause"})).json()
    assert [line["action"] for line in paused["items"]] == ["schedule.pause"] * 3
    assert {(line["subject"], line["actor"], line["address"]) for line in paused["items"]} == {
        (schedule_id, "open", "127.0.0.1")
    }
    assert (await client.get("/v1/audit", params={"action": "key.make"})).json() == {"items": [], "next": None}
    refused = await client.get("/v1/audit", params={"action": "schedule.dance"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "query:action")


async def test_page_by_page(client: httpx2.AsyncClient) -> None:
    """No line twice, none left out, and no page behind the last one, also where it is full."""
    await some_changes(client)
    whole = (await client.get("/v1/audit")).json()
    assert (len(whole["items"]), whole["next"]) == (7, None)
    for params, count in (({}, 7), ({"action": "schedule.resume"}, 3)):
        for limit in (1, 2, 3, 7):
            found, before, pages = [], None, 0
            while pages == 0 or before is not None:
                asked = {**params, "limit": limit, **({} if before is None else {"before": before})}
                page = (await client.get("/v1/audit", params=asked)).json()
                found += [line["id"] for line in page["items"]]
                before, pages = page["next"], pages + 1
            assert found == sorted(set(found), reverse=True)
            assert (len(found), pages) == (count, -(-count // limit))
