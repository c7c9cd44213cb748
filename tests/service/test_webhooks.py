"""Webhooks: told once something has happened, signed as Standard Webhooks has it, until they are delivered."""

import base64
import hmac
import json
import socket
from hashlib import sha256
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import update

from loadgen.service.jobs.takeover import LOOK_S
from loadgen.service.store.tables import runs
from loadgen.service.webhooks.outbox import RETRY_S
from loadgen.service.webhooks.signing import signed_headers
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.receiver import Receiver, dripping
from tests.service.fakes.still_clock import StillClock
from tests.service.house import service
from tests.service.telling import SECRET, courier_of, deliver, hook


def test_signatures_are_those_of_standard_webhooks() -> None:
    """The example of the specification."""
    headers = signed_headers(
        base64.b64decode(SECRET.removeprefix("whsec_")),
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_the_end_of_a_run_is_told_once(
    make: Make, nursery: Nursery, receiver: Receiver, clock: StillClock
) -> None:
    """A receiver that wants this kind gets it, signed over id, time and body, and not again."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    courier = courier_of(services)
    async with client_of(services) as client:
        made = await client.post("/v1/webhooks", json=hook(receiver.url, "run.completed"))
        assert made.status_code == 201, made.text
        run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
        services.supervisor.turn()
        nursery.latest.run()
        nursery.latest.end()
        services.supervisor.turn()
        await deliver(courier)
        await deliver(courier)
        ((headers, body),) = receiver.got
        told = json.loads(body)
        assert (told["type"], told["data"]["run_id"], told["data"]["state"]) == ("run.completed", run_id, "completed")
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), signed, sha256).digest()
        assert headers["webhook-signature"] == f"v1,{base64.b64encode(expected).decode()}"
        deliveries = (await client.get(f"/v1/webhooks/{made.json()['id']}/deliveries")).json()["items"]
        assert [(each["state"], each["attempts"]) for each in deliveries] == [("delivered", 1)]
        assert SECRET not in (await client.get("/v1/webhooks")).text


async def test_a_receiver_that_fails_is_tried_again_and_given_up(
    make: Make, nursery: Nursery, receiver: Receiver, clock: StillClock
) -> None:
    """After each pause once, with the same id; after the last it is given up. A redirect is not followed."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    courier = courier_of(services)
    receiver.status = 302
    async with client_of(services) as client:
        made = (await client.post("/v1/webhooks", json=hook(receiver.url, "run.cancelled"))).json()
        run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
        services.supervisor.turn()
        nursery.latest.run()
        await client.post(f"/v1/runs/{run_id}/cancel")
        nursery.latest.end(130)
        services.supervisor.turn()
        for pause_s in (*RETRY_S, 1e6):
            await deliver(courier)
            await deliver(courier)
            clock.move(pause_s)
        await deliver(courier)
        (delivery,) = (await client.get(f"/v1/webhooks/{made['id']}/deliveries")).json()["items"]
    assert (delivery["state"], delivery["attempts"], delivery["last_error"]) == (
        "given_up",
        len(RETRY_S) + 1,
        "answered 302",
    )
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert len(receiver.got) == len(RETRY_S) + 1


async def test_a_receiver_that_drips_holds_up_no_other(make: Make, receiver: Receiver) -> None:
    """Each byte of its answer comes in time and the whole does not: it is left, and tried again as any that fails."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    with dripping() as slow:
        async with client_of(services) as client:
            made = (await client.post("/v1/webhooks", json=hook(slow, "run.cancelled"))).json()
            await client.post("/v1/webhooks", json={**hook(receiver.url, "run.cancelled"), "name": "quick"})
            await cancelled_run(client)
            await deliver(courier_of(services, limit_s=0.3))
            (delivery,) = (await client.get(f"/v1/webhooks/{made['id']}/deliveries")).json()["items"]
    assert (delivery["state"], delivery["last_error"]) == ("waiting", "took longer than 0.3 s")
    assert len(receiver.got) == 1


async def test_the_end_of_a_run_that_never_began_is_told_as_well(
    make: Make, receiver: Receiver, clock: StillClock
) -> None:
    """Cancelled while it waited, not able to begin, given up after its service was lost too often: each is an end."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    courier = courier_of(services)
    async with client_of(services) as client:
        await client.post("/v1/webhooks", json=hook(receiver.url, "run.cancelled", "run.failed"))
        cancelled, failed = [(await client.post("/v1/runs", json=a_run())).json()["id"] for _ in range(2)]
        await client.post(f"/v1/runs/{cancelled}/cancel")
        (services.runs.folder / failed).write_text("in the way of its folder")
        services.supervisor.turn()
        lost = (await client.post("/v1/runs", json=a_run())).json()["id"]
        with services.database.write() as connection:
            values = {"state": "starting", "owner": services.supervisor.owner, "attempts": 5}
            connection.execute(update(runs).where(runs.c.id == lost).values(**values))
        clock.move(LOOK_S + 1)
        services.supervisor.turn()
        await deliver(courier)
    told = [json.loads(body) for _, body in receiver.got]
    assert {(each["type"], each["data"]["run_id"], each["data"]["reason"]) for each in told} == {
        ("run.cancelled", cancelled, "asked"),
        ("run.failed", failed, "internal"),
        ("run.failed", lost, "service_lost"),
    }


async def cancelled_run(client: httpx2.AsyncClient) -> str:
    """The id of a run that somebody cancelled while it waited."""
    run_id = str((await client.post("/v1/runs", json=a_run())).json()["id"])
    assert (await client.post(f"/v1/runs/{run_id}/cancel")).status_code == 202
    return run_id


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/",
        "http://sly.example/x",
        "http://10.0.0.7/x",
        "https://evil.example/",
        "ftp://127.0.0.1/",
    ],
)
async def test_webhooks_go_where_the_settings_let_them(make: Make, url: str) -> None:
    """No host that is not listed, and no metadata service by whatever name."""
    services = make(webhook_host=["loopback", "sly.example"], allow_env=["HOOK_SECRET"])
    async with client_of(services) as client:
        answer = await client.post("/v1/webhooks", json=hook(url, "run.failed"))
    assert answer.status_code in (403, 422)
    assert answer.json()["errors"][0]["pointer"] == "/url"


@pytest.mark.slow
def test_a_service_that_ends_waits_for_no_receivers(tmp_path: Path) -> None:
    """However many messages wait for one that takes them and never answers, it ends within half a minute."""
    environment = {"HOOK_SECRET": SECRET}
    flags = ("--webhook-host", "loopback", "--allow-env", "HOOK_SECRET")
    with (
        socket.create_server(("127.0.0.1", 0), backlog=100) as silent,
        service(tmp_path / "data", *flags, environment=environment) as house,
    ):
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        for place in range(5):
            made = house.client.post("/v1/webhooks", json={**hook(url, "run.failed"), "name": f"h{place}"})
            assert made.status_code == 201, made.text
        house.ended(house.ask("http://127.0.0.1:9", num_requests=1))
        connection, _ = silent.accept()
        with connection:
            house.process.terminate()
            assert house.process.wait(30) == 0


async def test_a_webhook_is_changed_paused_and_resumed(make: Make, receiver: Receiver, clock: StillClock) -> None:
    """What is not given stays. While it is paused nothing is delivered; then what waited goes where it goes by now."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    courier = courier_of(services)
    receiver.status = 500
    async with client_of(services) as client:
        made = (await client.post("/v1/webhooks", json=hook(receiver.url + "/old", "run.cancelled"))).json()
        path = f"/v1/webhooks/{made['id']}"
        await cancelled_run(client)
        await deliver(courier)
        paused = await client.patch(path, json={"paused": True})
        assert (paused.status_code, paused.json()) == (200, {**made, "paused": True})
        clock.move(RETRY_S[0])
        await cancelled_run(client)
        await deliver(courier)
        assert len(receiver.got) == 1
        receiver.status = 204
        change = {"url": receiver.url + "/new", "kinds": ["run.failed"], "paused": False}
        changed = (await client.patch(path, json=change)).json()
        assert changed == {**made, **change}
        await cancelled_run(client)
        await deliver(courier)
        assert [headers["path"] for headers, _ in receiver.got] == ["/hook/old", "/hook/new"]
        assert (await client.patch(path, json={})).json() == changed
        (_, line, *_) = (await client.get("/v1/audit", params={"action": "webhook.change"})).json()["items"]
    assert line["detail"] == {"name": "chat", "changed": ["paused"], "paused": True}


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"url": "http://10.0.0.7/x"}, 403, "/url"),
        ({"url": "ftp://127.0.0.1/"}, 422, "/url"),
        ({"kinds": []}, 422, "/kinds"),
        ({"kinds": ["run.walked"]}, 422, "/kinds/0"),
        ({"secret_env": "OTHER"}, 422, "/secret_env"),
    ],
)
async def test_a_change_is_held_to_the_rules_of_a_new_webhook(
    make: Make, change: dict[str, object], status: int, pointer: str
) -> None:
    """And what is refused changes nothing."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    async with client_of(services) as client:
        made = (await client.post("/v1/webhooks", json=hook("http://127.0.0.1:1/x", "run.failed"))).json()
        answer = await client.patch(f"/v1/webhooks/{made['id']}", json=change)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (status, pointer)
        assert (await client.get(f"/v1/webhooks/{made['id']}")).json() == made
        assert (await client.patch("/v1/webhooks/none", json={"paused": True})).status_code == 404


async def test_a_webhook_that_is_not_allowed_any_more_can_be_paused_and_not_resumed(make: Make) -> None:
    """The settings may have changed since it was made."""
    async with client_of(make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])) as client:
        made = (await client.post("/v1/webhooks", json=hook("http://127.0.0.1:1/x", "run.failed"))).json()
    async with client_of(make()) as client:
        path = f"/v1/webhooks/{made['id']}"
        assert (await client.patch(path, json={"paused": True})).status_code == 200
        assert (await client.patch(path, json={"paused": False})).status_code == 403


async def test_a_secret_is_a_variable_that_may_be_named(client: httpx2.AsyncClient, make: Make) -> None:
    """And without any host in the settings there are no webhooks."""
    services = make(webhook_host=["loopback"])
    async with client_of(services) as other:
        refused = await other.post("/v1/webhooks", json=hook("http://127.0.0.1:1/x", "run.failed"))
        assert refused.json()["errors"][0]["pointer"] == "/secret_env"
    assert (await client.post("/v1/webhooks", json=hook("http://127.0.0.1:1/x", "run.failed"))).status_code == 403
