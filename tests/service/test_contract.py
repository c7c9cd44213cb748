"""The OpenAPI document is true: an answer is one that it tells of, and never a fault of the service."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from loadgen.service.auth.keys import made_up
from tests.service.conftest import Make, client_of
from tests.service.house import House, service

KEY = made_up()
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
WITH_EXAMPLES = (
    *("RunRequest", "ExperimentRequest", "ScheduleRequest", "BaselineRequest", "KeyRequest"),
    *("WebhookRequest", "WebhookChange"),
)
EXAMPLES = int(os.environ.get("LOADGEN_CONTRACT_EXAMPLES", "10"))


async def test_every_operation_is_described(client: httpx2.AsyncClient) -> None:
    """Each has words, the problems that it may answer with, and, where it takes a body, an example of one."""
    document = (await client.get("/v1/openapi.json")).json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            name = f"{method} {path}"
            assert operation.get("description"), name
            if path in ("/healthz", "/readyz") or not path.startswith("/v1/"):
                continue
            assert "application/problem+json" in operation["responses"]["401"]["content"], name
            assert "application/json" not in operation["responses"]["422"]["content"], name
            body = operation.get("requestBody")
            if body is not None:
                schema = body["content"]["application/json"]["schema"]
                named = schema.get("$ref", "").rpartition("/")[2]
                if named in WITH_EXAMPLES:
                    assert document["components"]["schemas"][named].get("examples"), named


async def test_the_examples_are_right(make: Make) -> None:
    """What the document shows as a request is accepted as it stands."""
    services = make(webhook_host=["hooks.example.org"], allow_env=["LOADGEN_WEBHOOK_SECRET"])
    async with client_of(services) as client:
        schemas = (await client.get("/v1/openapi.json")).json()["components"]["schemas"]
        for name, path, status in (
            ("RunRequest", "/v1/runs", 202),
            ("ExperimentRequest", "/v1/experiments", 202),
            ("ScheduleRequest", "/v1/schedules", 201),
            ("WebhookRequest", "/v1/webhooks", 201),
        ):
            answer = await client.post(path, json=schemas[name]["examples"][0])
            assert answer.status_code == status, (name, answer.text)
        for change in schemas["WebhookChange"]["examples"]:
            answer = await client.patch(f"/v1/webhooks/{answer.json()['id']}", json=change)
            assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """With a key, so that requests get to what is behind the door. Its targets are ports where nobody listens."""
    data: Path = tmp_path_factory.mktemp("contract") / "data"
    with service(data, "--admin-key-env", "CONTRACT_KEY", environment={"CONTRACT_KEY": KEY}) as found:
        yield found


@pytest.mark.slow
def test_no_request_breaks_the_service(house: House, tmp_path: Path) -> None:
    """schemathesis makes requests of all kinds, right and wrong, for every operation."""
    done = subprocess.run(
        (
            *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{house.url}/v1/openapi.json"),
            *("--url", house.url, "--header", f"Authorization: Bearer {KEY}", "--checks", CHECKS),
            *("--max-examples", str(EXAMPLES), "--seed", "1", "--exclude-path", "/v1/runs/{run_id}/events"),
            *("--phases", "examples,coverage,fuzzing", "--request-timeout", "20", "--no-color"),
        ),
        capture_output=True,
        timeout=1200,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, (done.stdout[-6000:] + done.stderr[-1000:]).decode()
