"""What is asked of a service in its own process, and what comes of it."""

from typing import Any

import httpx2

from tests.service.conftest import a_run

CAPACITY = {
    "kind": "capacity",
    "target": {"url": "http://127.0.0.1:8000"},
    "options": {"slo": "ttft=500ms", "max": 256},
}
"""A capacity test."""


async def ask(client: httpx2.AsyncClient, url: str = "http://127.0.0.1:8000", **more: object) -> str:
    """A run; its id."""
    answer = await client.post("/v1/runs", json={**a_run(url), **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


async def shown(client: httpx2.AsyncClient, run_id: str) -> dict[str, object]:
    """The run as it is now."""
    answer: dict[str, object] = (await client.get(f"/v1/runs/{run_id}")).json()
    return answer


async def make_schedule(client: httpx2.AsyncClient, **values: Any) -> dict[str, Any]:
    """A schedule of every hour; as it was made."""
    body = {"name": "nightly", "cron": "0 * * * *", "request": a_run(), **values}
    answer = await client.post("/v1/schedules", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def found(level: float | None) -> dict[str, Any]:
    """What a capacity test finds, at that level."""
    return {
        "variable": "concurrency",
        "level": level,
        "low": level,
        "high": None,
        "requests_per_s": 3.0,
        "output_tokens_per_s": 100.0,
        "attainment_ratio": 0.99,
        "families": [
            {
                "name": "loadgen_capacity_level",
                "kind": "gauge",
                "help": "h",
                "unit": "",
                "series": [[{"server": "s", "variable": "concurrency"}, level]],
            }
        ],
    }
