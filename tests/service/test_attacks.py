"""What else others may send: slow bodies, scripts in names and reports, connections behind the list's back."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest

from loadgen.core.errors import ExitCode
from loadgen.service.app import answer_of
from loadgen.service.body_limit import BodyLimit
from loadgen.service.jobs.order import Order, load_outcome
from loadgen.service.services import Services
from tests.service.conftest import Make, a_run, client_of
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.receiver import Receiver
from tests.service.ordering import carried_out
from tests.service.telling import courier_of, deliver, hook


async def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    """The request ends with 408 though its sender never does, and the application is not asked."""
    sent: list[dict[str, Any]] = []

    async def never(_scope: Any, _receive: Any, _send: Any) -> None:
        raise AssertionError("the application was asked")

    async def receive() -> dict[str, Any]:
        if not sent:
            await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    limited = BodyLimit(never, most_bytes=10**9, answer=answer_of, limit_s=0.1)
    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    await asyncio.wait_for(limited(scope, receive, send), 10)
    assert sent[0]["status"] == 408


async def test_a_body_that_does_not_say_how_large_it_is_has_its_limit(client: httpx2.AsyncClient) -> None:
    """It is left as soon as more has come than is allowed, however much there would be."""
    came = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal came
        for _ in range(1000):
            came += 1
            yield b" " * 100_000

    answer = await client.post("/v1/runs", content=pieces(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert came < 100


async def test_a_script_in_a_name_stays_a_text(client: httpx2.AsyncClient) -> None:
    """It comes back as JSON, which no browser takes for a page."""
    name = "<script>alert(1)</script>"
    made = await client.post("/v1/runs", json={**a_run(), "name": name, "labels": {"a": "<img src=x>"}})
    shown = await client.get(made.headers["location"])
    assert shown.json()["name"] == name
    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"


async def test_a_report_runs_apart(client: httpx2.AsyncClient, services: Services, nursery: Nursery) -> None:
    """Its page holds texts of servers, so that it is put where it reaches neither the cookie nor the API."""
    run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
    services.supervisor.turn()
    nursery.latest.run()
    (nursery.latest.folder / "report.html").write_text("<script>1</script>")
    nursery.latest.end()
    services.supervisor.turn()
    policy = (await client.get(f"/v1/runs/{run_id}/report")).headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts;")
    assert "default-src 'none'" in policy
    assert "allow-same-origin" not in policy


_CONNECTS = """
import asyncio, socket, sys
from loadgen.service.admission.addresses import AllowList
from loadgen.service.admission.guard import guard_connections
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
guard_connections(AllowList.parse(sys.argv[1:]))
async def main():
    for connect in (
        lambda: asyncio.open_connection("127.0.0.1", port),
        lambda: asyncio.to_thread(socket.create_connection, ("localhost", port)),
    ):
        try:
            await connect()
            print("open")
        except PermissionError:
            print("refused")
asyncio.run(main())
"""


def test_no_connection_goes_behind_the_lists_back() -> None:
    """Whatever library opens it, and by whatever name: in a process that is guarded it is refused at the socket."""
    for allowed, expected in ((["10.0.0.0/8"], "refused"), (["gpu1.example"], "refused"), (["loopback"], "open")):
        done = subprocess.run(
            (sys.executable, "-c", _CONNECTS, *allowed), capture_output=True, timeout=60, check=False, cwd=Path.cwd()
        )
        assert done.stdout.decode().split() == [expected, expected], done.stderr.decode()


def test_a_process_that_measures_holds_to_the_list_of_its_order(tmp_path: Path) -> None:
    """A name may mean another address by the time that it is connected to: it is not reached there."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        options = {"url": url, "model": "m", "num_requests": 1, "timeout": "1s"}
        order = Order(run_id="r", kind="run", options=options, folder=str(tmp_path), allowed_hosts=["gpu1.example"])
        assert carried_out(order).returncode == 0
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    outcome = load_outcome(tmp_path)
    assert outcome is not None
    assert outcome.exit_code == ExitCode.TARGET_FAILED


async def test_a_receivers_name_that_means_another_address_by_then(make: Make, receiver: Receiver) -> None:
    """It is looked at again before each message: to a metadata service nothing is sent."""
    services = make(webhook_host=["loopback"], allow_env=["HOOK_SECRET"])
    courier = courier_of(services, lambda _host, _port: [ip_address("169.254.169.254")])
    async with client_of(services) as client:
        named = receiver.url.replace("127.0.0.1", "localhost")
        made = (await client.post("/v1/webhooks", json=hook(named, "run.cancelled"))).json()
        run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
        await client.post(f"/v1/runs/{run_id}/cancel")
        await deliver(courier)
        (delivery,) = (await client.get(f"/v1/webhooks/{made['id']}/deliveries")).json()["items"]
    assert (delivery["state"], delivery["last_error"]) == ("waiting", "the receiver's address is not allowed")
    assert receiver.got == []


def _nested(depth: int) -> bytes:
    """A request whose options lie that deep."""
    inner = b'{"a":' * depth + b"1" + b"}" * depth
    return b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"extra_body":' + inner + b"}}"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 500_000,
        b'{"kind":"run","options":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b'{"kind":"run","name":"\\ud800","target":{"url":"http://127.0.0.1:1"},"options":{}}',
        b'{"kind":"run","name":"\\u0000","target":{"url":"http://127.0.0.1:1"},"options":{}}',
        b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"num_requests":1e999}}',
        b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"num_requests":NaN}}',
        b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"seed":' + b"9" * 5000 + b"}}",
        b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"request_rate":5,"burstiness":1e999}}',
        b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"label":{"a":"\\ud800"}}}',
        b'{"kind":"run","target":{"url":"http://127.0.0.1:1"},"options":{"header":{"a":["\\ud800"]}}}',
        *(_nested(depth) for depth in (200, 500, 800, 900, 950)),
        b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("path", ["/v1/runs", "/v1/runs/check", "/v1/import"])
async def test_bodies_that_break_parsers(client: httpx2.AsyncClient, body: bytes, path: str) -> None:
    """Nested without end, half of a character, numbers beyond all numbers: a problem, never a fault, now or later."""
    answer = await client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text[:200]
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await client.get("/v1/runs")).json()["items"] == []


async def test_numbers_that_no_database_holds(client: httpx2.AsyncClient) -> None:
    """Every number that a query may have is refused beyond what a column can be compared with."""
    paths = (await client.get("/v1/openapi.json")).json()["paths"]
    asked = []
    for path, operations in paths.items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            schema = parameter["schema"]
            if any(kind.get("type") == "integer" for kind in (schema, *schema.get("anyOf", ()))):
                asked.append(f"{path}?{parameter['name']}={2**64}")
    assert len(asked) > 5
    for address in asked:
        assert (await client.get(address)).status_code == 422, address


async def test_a_database_that_is_gone_is_no_fault(client: httpx2.AsyncClient, services: Services) -> None:
    """Whoever asks meanwhile is told to come again, and not where the database is."""
    database = services.options.data_dir / "loadgen.db"
    services.database.close()
    kept = database.rename(database.with_name("kept.db"))
    database.mkdir()
    for answer in (await client.get("/v1/runs"), await client.post("/v1/runs", json=a_run())):
        assert (answer.status_code, answer.json()["detail"]) == (503, "the database does not answer")
        assert int(answer.headers["retry-after"]) > 0
    database.rmdir()
    kept.rename(database)
    assert (await client.get("/v1/runs")).status_code == 200


async def test_a_message_with_what_no_database_takes(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """A server's words end up in the run's message, whatever is in them."""
    run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end(4, message="it said \0 and \u2028")
    services.supervisor.turn()
    assert (await client.get(f"/v1/runs/{run_id}")).json()["message"] == "it said ? and \u2028"


async def test_a_report_that_cannot_be_made_says_why(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """A conflict with what the command said, without where the service keeps its files."""
    run_id = (await client.post("/v1/runs", json=a_run())).json()["id"]
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end()
    services.supervisor.turn()
    answer = await client.get(f"/v1/runs/{run_id}/report")
    assert answer.status_code == 409
    said = answer.json()["detail"]
    assert said.startswith("the report cannot be made: ")
    assert f"{run_id}/out/measured" in said
    assert str(services.options.data_dir) not in said
