"""Who is let in: keys and their scopes, sessions of browsers, forged requests, guessing."""

import asyncio
import re
import threading
from pathlib import Path

import httpx2
import pytest
from anyio import to_thread

from loadgen.core.errors import ConfigError
from loadgen.service.auth.failures import MOST, WINDOW_S
from loadgen.service.auth.keys import made_up
from loadgen.service.auth.sessions import COOKIE, LASTS_S
from loadgen.service.services import Services
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.still_clock import StillClock


async def make_key(client: httpx2.AsyncClient, scope: str = "admin", **more: object) -> tuple[str, dict[str, str]]:
    answer = await client.post("/v1/keys", json={"name": scope, "scope": scope, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], {"Authorization": f"Bearer {answer.json()['key']}"}


async def test_without_keys_this_machine_may_do_all_and_with_one_nobody_may_without(
    client: httpx2.AsyncClient,
) -> None:
    """The first key closes the door, also after it is revoked beside another one."""
    assert (await client.get("/v1/session")).json()["open"]
    first, admin = await make_key(client)
    assert (await client.get("/v1/runs")).status_code == 401
    assert (await client.get("/v1/runs")).headers["www-authenticate"].startswith("Bearer")
    assert (await client.get("/v1/runs", headers=admin)).status_code == 200
    _, other = await make_key_as(client, admin)
    assert (await client.delete(f"/v1/keys/{first}", headers=other)).status_code == 204
    assert (await client.get("/v1/runs", headers=admin)).status_code == 401
    assert (await client.get("/v1/runs")).status_code == 401


async def make_key_as(
    client: httpx2.AsyncClient, headers: dict[str, str], scope: str = "admin", **more: object
) -> tuple[str, dict[str, str]]:
    answer = await client.post("/v1/keys", json={"name": scope, "scope": scope, **more}, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], {"Authorization": f"Bearer {answer.json()['key']}"}


@pytest.mark.parametrize(("scope", "allowed"), [("read", {"GET /v1/runs"}), ("run", {"GET /v1/runs", "POST /v1/runs"})])
async def test_a_scope_is_all_that_a_key_may(client: httpx2.AsyncClient, scope: str, allowed: set[str]) -> None:
    """Reading, running and giving out keys are apart; what lacks is named."""
    _, admin = await make_key(client)
    _, key = await make_key_as(client, admin, scope)
    answers = {
        "GET /v1/runs": await client.get("/v1/runs", headers=key),
        "POST /v1/runs": await client.post("/v1/runs", json=a_run(), headers=key),
        "GET /v1/keys": await client.get("/v1/keys", headers=key),
        "GET /v1/audit": await client.get("/v1/audit", headers=key),
        "POST /v1/keys": await client.post("/v1/keys", json={"name": "mine", "scope": "admin"}, headers=key),
    }
    assert {name for name, answer in answers.items() if answer.status_code < 300} == allowed
    assert {answer.status_code for answer in answers.values()} <= {200, 202, 403}


OPEN = {"get /healthz", "get /readyz", "post /v1/session"}
"""For whoever has no key; a session is opened with one."""
TO_RUN = {
    *("post /v1/runs", "post /v1/runs/check", "post /v1/runs/{run_id}/cancel", "post /v1/experiments"),
    *("post /v1/schedules", "put /v1/schedules/{schedule_id}", "delete /v1/schedules/{schedule_id}"),
    *(f"post /v1/schedules/{{schedule_id}}/{act}" for act in ("pause", "resume", "run")),
    *("post /v1/baselines", "delete /v1/baselines/{baseline_id}"),
}
TO_RULE = {
    *("get /v1/keys", "post /v1/keys", "delete /v1/keys/{key_id}", "get /v1/audit", "get /v1/export"),
    *("post /v1/import", "get /v1/webhooks", "post /v1/webhooks", "get /v1/webhooks/{webhook_id}"),
    *("patch /v1/webhooks/{webhook_id}", "delete /v1/webhooks/{webhook_id}"),
    "get /v1/webhooks/{webhook_id}/deliveries",
}


async def test_every_operation_asks_for_its_scope(client: httpx2.AsyncClient) -> None:
    """Nobody gets in without a key, and what is in neither list is for readers, as a new operation would be."""
    paths = (await client.get("/v1/openapi.json")).json()["paths"]
    operations = {f"{method} {path}" for path, found in paths.items() for method in found}
    _, admin = await make_key(client)
    keys = {scope: (await make_key_as(client, admin, scope))[1] for scope in ("read", "run", "admin")}
    for operation in sorted(operations - OPEN):
        method, path = operation.split()
        url, body = re.sub(r"{\w+}", "none", path), {} if method in ("post", "put", "patch") else None
        assert (await client.request(method, url, json=body)).status_code == 401, operation
        refused = {
            scope
            for scope, key in keys.items()
            if (await client.request(method, url, json=body, headers=key)).status_code in (401, 403)
        }
        lacking = {"read", "run"} if operation in TO_RULE else {"read"} if operation in TO_RUN else set()
        assert refused == lacking, operation


async def test_a_key_is_seen_once_and_kept_as_a_digest(client: httpx2.AsyncClient, services: Services) -> None:
    """Neither lists nor the database nor the audit log hold it."""
    _, admin = await make_key(client)
    secret = admin["Authorization"].split("_", 2)[2]
    listed = (await client.get("/v1/keys", headers=admin)).text + (await client.get("/v1/audit", headers=admin)).text
    assert secret not in listed
    stored = b"".join(path.read_bytes() for path in services.options.data_dir.glob("loadgen.db*"))
    assert secret.encode() not in stored


async def test_a_key_past_its_time_is_none(client: httpx2.AsyncClient, clock: StillClock) -> None:
    """And the last one that can give out keys cannot be revoked."""
    first, admin = await make_key(client)
    _, short = await make_key_as(client, admin, "read", expires_in_s=60)
    assert (await client.get("/v1/runs", headers=short)).status_code == 200
    clock.move(61)
    assert (await client.get("/v1/runs", headers=short)).status_code == 401
    assert (await client.delete(f"/v1/keys/{first}", headers=admin)).status_code == 409


async def test_a_keys_own_limits_hold(client: httpx2.AsyncClient) -> None:
    """A key may be allowed less load than the settings allow, never more."""
    _, admin = await make_key(client)
    _, small = await make_key_as(client, admin, "run", limits={"concurrency": 4, "run_time_s": 60})
    assert (await client.post("/v1/runs", json=a_run(concurrency=5), headers=small)).status_code == 403
    asked = await client.post("/v1/runs", json=a_run(concurrency=4), headers=small)
    assert asked.json()["time_limit_s"] == 60


async def test_a_schedule_is_no_way_around_a_keys_limits(
    client: httpx2.AsyncClient, services: Services, clock: StillClock
) -> None:
    """Its own schedule runs no longer than it might itself, and it does not set off what others may schedule."""
    _, admin = await make_key(client)
    _, small = await make_key_as(client, admin, "run", limits={"concurrency": 4, "run_time_s": 60})
    made = [
        await client.post(
            "/v1/schedules", headers=key, json={"name": name, "cron": "0 * * * *", "request": a_run(concurrency=level)}
        )
        for key, name, level in ((small, "small", 4), (admin, "large", 5))
    ]
    own, others = (each.json()["id"] for each in made)
    clock.move(3600)
    services.scheduler.turn()
    listed = (await client.get("/v1/runs", headers=admin, params={"schedule_id": own})).json()["items"]
    assert [run["time_limit_s"] for run in listed] == [60]
    assert (await client.post(f"/v1/schedules/{others}/run", headers=small)).status_code == 403
    assert (await client.post(f"/v1/schedules/{others}/run", headers=admin)).status_code == 202
    at_once = await client.post(f"/v1/schedules/{own}/run", headers=small)
    assert (at_once.status_code, at_once.json()["time_limit_s"]) == (202, 60)


async def test_a_limited_key_resumes_what_it_may_ask_for_itself(client: httpx2.AsyncClient) -> None:
    """Of load and of time; else it is told what it would be told if it made that schedule."""
    _, admin = await make_key(client)
    _, small = await make_key_as(client, admin, "run", limits={"concurrency": 4, "run_time_s": 60})
    requests = {
        "wide": a_run(concurrency=5),
        "long": {**a_run(), "time_limit_s": 61},
        "endless": a_run(),
        "small": {**a_run(), "time_limit_s": 60},
    }
    told = {}
    for name, request in requests.items():
        body = {"name": name, "cron": "0 * * * *", "request": request, "paused": True}
        made = (await client.post("/v1/schedules", headers=admin, json=body)).json()
        resumed = await client.post(f"/v1/schedules/{made['id']}/resume", headers=small)
        assert (await client.get(f"/v1/schedules/{made['id']}", headers=admin)).json()["paused"] is (name != "small")
        told[name] = resumed.status_code
        if name in ("wide", "long"):
            again = {**body, "name": f"{name} again"}
            assert resumed.json() == (await client.post("/v1/schedules", headers=small, json=again)).json()
        assert (await client.post(f"/v1/schedules/{made['id']}/resume", headers=admin)).status_code == 200
    assert told == {"wide": 403, "long": 403, "endless": 403, "small": 200}


async def test_guessing_is_slowed_down(client: httpx2.AsyncClient, clock: StillClock) -> None:
    """After so many wrong keys an address has to wait, for a right one too; a minute later it may try again."""
    _, admin = await make_key(client)
    for _ in range(MOST):
        assert (await client.get("/v1/runs", headers={"Authorization": f"Bearer {made_up()}"})).status_code == 401
    answer = await client.get("/v1/runs", headers=admin)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= WINDOW_S + 1
    clock.move(WINDOW_S + 1)
    assert (await client.get("/v1/runs", headers=admin)).status_code == 200


@pytest.mark.parametrize(
    "authorization", ["Bearer", "Bearer ", "Basic dTpw", "Bearer lgk_x_y", "Bearer lgk_" + "a" * 400]
)
async def test_what_is_no_key_is_none(client: httpx2.AsyncClient, authorization: str) -> None:
    """Whatever stands in the header, and also where no key would be needed."""
    assert (await client.get("/v1/runs", headers={"Authorization": authorization})).status_code == 401


async def test_the_secret_has_to_be_right(client: httpx2.AsyncClient) -> None:
    """The number of a key, which lists show, opens nothing."""
    _, admin = await make_key(client)
    scheme, number, secret = admin["Authorization"].split("_", 2)
    for wrong in (secret[:-1] + ("A" if secret[-1] != "A" else "B"), secret[::-1], "A" * 43):
        forged = {"Authorization": f"{scheme}_{number}_{wrong}"}
        assert (await client.get("/v1/runs", headers=forged)).status_code == 401
    assert (await client.get("/v1/runs", headers=admin)).status_code == 200


async def signed_in(client: httpx2.AsyncClient) -> tuple[str, dict[str, str]]:
    """A browser's session: its second word; the cookie is in the client."""
    _, admin = await make_key(client)
    opened = await client.post("/v1/session", json={"key": admin["Authorization"].removeprefix("Bearer ")})
    assert opened.status_code == 201, opened.text
    return opened.json()["csrf"], admin


async def test_a_session_of_a_browser(client: httpx2.AsyncClient) -> None:
    """The cookie is for the browser alone and this site alone; a change needs the second word as well."""
    csrf, _ = await signed_in(client)
    assert (await client.get("/v1/runs")).status_code == 200
    assert (await client.post("/v1/runs", json=a_run())).status_code == 403
    assert (await client.post("/v1/runs", json=a_run(), headers={"X-CSRF-Token": "0" * 64})).status_code == 403
    for method, path in (("PUT", "/v1/schedules/none"), ("DELETE", "/v1/keys/none")):
        assert (await client.request(method, path)).status_code == 403, method
    assert (await client.post("/v1/runs", json=a_run(), headers={"X-CSRF-Token": csrf})).status_code == 202
    assert (await client.get("/v1/session")).json()["csrf"] == csrf


@pytest.mark.parametrize("secure", [False, True])
async def test_the_cookie_is_kept_from_scripts_and_other_sites(make: Make, secure: bool) -> None:
    """HttpOnly and SameSite=Strict; where a proxy speaks HTTPS, it never goes over a connection without it."""
    async with client_of(make(secure_cookies=secure)) as client:
        _, admin = await make_key(client)
        opened = await client.post("/v1/session", json={"key": admin["Authorization"].removeprefix("Bearer ")})
    cookie = opened.headers["set-cookie"].lower().split("; ")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert ("secure" in cookie) is secure


async def test_a_session_ends(client: httpx2.AsyncClient, clock: StillClock, services: Services) -> None:
    """With its time, with its key, and when it is closed; a cookie that was copied is worth nothing then."""
    csrf, admin = await signed_in(client)
    stolen = {"Cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
    async with client_of(services) as thief:
        assert (await thief.get("/v1/runs", headers=stolen)).status_code == 200
        assert (await thief.post("/v1/runs", json=a_run(), headers=stolen)).status_code == 403
        assert (await client.delete("/v1/session", headers={"X-CSRF-Token": csrf})).status_code == 204
        assert (await thief.get("/v1/runs", headers=stolen)).status_code == 401
    await client.post("/v1/session", json={"key": admin["Authorization"].removeprefix("Bearer ")})
    clock.move(LASTS_S + 1)
    assert (await client.get("/v1/runs")).status_code == 401
    key_id, key = await make_key_as(client, admin, "read")
    await client.post("/v1/session", json={"key": key["Authorization"].removeprefix("Bearer ")})
    assert (await client.get("/v1/runs")).status_code == 200
    assert (await client.delete(f"/v1/keys/{key_id}", headers=admin)).status_code == 204
    assert (await client.get("/v1/runs")).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example"},
        {"Host": "[::1"},
        {"Origin": "http://["},
    ],
)
async def test_other_sites_cannot_use_a_browser_on_this_machine(
    client: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    """Where no key is needed a page of another site, or a name bent to this machine, is refused all the same."""
    assert (await client.post("/v1/runs", json=a_run(), headers=headers)).status_code == 403


async def test_own_names_are_known(make: Make) -> None:
    """A public name is let in, with its origin; a name that is not told is not."""
    async with client_of(make(public_host=["load.example"])) as client:
        own = {"Host": "load.example", "Origin": "https://load.example"}
        assert (await client.post("/v1/runs", json=a_run(), headers=own)).status_code == 202
        assert (await client.get("/v1/runs", headers={"Host": "other.example"})).status_code == 403


def test_beyond_this_machine_only_with_keys(make: Make, tmp_path: Path) -> None:
    """Without a key the service does not start where others could reach it; with one from a file it does."""
    with pytest.raises(ConfigError, match="there is no key yet"):
        make(host="0.0.0.0")
    file = tmp_path / "key"
    file.write_text(made_up() + "\n")
    assert make(host="0.0.0.0", admin_key_file=file)
    file.write_text("hunter2")
    with pytest.raises(ConfigError, match="--admin-key-file"):
        make(host="0.0.0.0", admin_key_file=file)


async def test_health_needs_no_key_and_tells_nothing(client: httpx2.AsyncClient) -> None:
    """Whoever watches over the service needs no secret; metrics are for readers."""
    await make_key(client)
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).status_code == 200
    assert (await client.get("/metrics")).status_code == 401


async def test_readiness_tells_nobody_of_the_database(client: httpx2.AsyncClient, services: Services) -> None:
    """Where it is and how it fails stands in the log, and not in an answer that needs no key."""
    database = services.options.data_dir / "loadgen.db"
    services.database.close()
    database.write_bytes(b"no database" * 1000)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["detail"]) == (503, "the database does not answer")


async def test_health_waits_for_no_thread(client: httpx2.AsyncClient) -> None:
    """While every thread that answers requests waits, say for a database, the process still answers that it lives."""
    limiter, loop = to_thread.current_default_thread_limiter(), asyncio.get_running_loop()
    taken, free = asyncio.Event(), threading.Event()

    def hold() -> None:
        loop.call_soon_threadsafe(taken.set)
        free.wait(30)

    tokens, limiter.total_tokens = limiter.total_tokens, 1
    waiting = asyncio.create_task(to_thread.run_sync(hold))
    try:
        await taken.wait()
        assert (await asyncio.wait_for(client.get("/healthz"), 5)).status_code == 200
    finally:
        free.set()
        await waiting
        limiter.total_tokens = tokens


async def test_every_answer_has_the_headers_that_keep_browsers_in_check(client: httpx2.AsyncClient) -> None:
    """Also a problem, and one of a route that is not there."""
    for path in ("/v1/runs", "/v1/nothing", "/v1/runs/none"):
        headers = (await client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
