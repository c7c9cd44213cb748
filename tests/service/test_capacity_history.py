"""Capacity tests become a history, each held against those before it."""

from typing import Any

import httpx2
import pytest

from loadgen.service.services import Services
from tests.service.asking import CAPACITY, found
from tests.service.fakes.obedient_child import Nursery
from tests.service.fakes.still_clock import StillClock


async def test_a_fall_is_seen_told_and_exported(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """Six alike and then half of it: a regression in the history and on the page for Prometheus."""
    for level in (64.0, 64, 68, 64, 60, 64, 32):
        await client.post("/v1/runs", json=CAPACITY)
        services.supervisor.turn()
        nursery.latest.run()
        nursery.latest.end(0, capacity=found(level), result={"level": level})
        services.supervisor.turn()
        clock.move(86400)
    (series,) = (await client.get("/v1/history/capacity")).json()["items"]
    points = (await client.get(f"/v1/history/capacity/{series['series']}")).json()["items"]
    assert [point["verdict"] for point in points] == ["too_few"] * 4 + ["no_change"] * 2 + ["regression"]
    assert points[-1]["expected"] == pytest.approx(64)
    page = (await client.get("/metrics")).text
    assert 'loadgen_capacity_level{server="s",variable="concurrency"} 32.0' in page
    assert f'loadgen_service_capacity_change{{series="{series["series"]}",variable="concurrency"}} -1.0' in page


async def measured(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, level: float, **request: Any
) -> dict[str, Any]:
    """A capacity test that ends with that level; the run."""
    asked = await client.post("/v1/runs", json={**CAPACITY, **request})
    assert asked.status_code == 202, asked.text
    services.supervisor.turn()
    nursery.latest.run()
    result = found(level)
    nursery.latest.end(0, capacity=result, result={name: result[name] for name in ("variable", "level", "low", "high")})
    services.supervisor.turn()
    run: dict[str, Any] = asked.json()
    return run


async def baseline_of_series(client: httpx2.AsyncClient) -> dict[str, Any] | None:
    (series,) = (await client.get("/v1/history/capacity")).json()["items"]
    told: dict[str, Any] = (await client.get(f"/v1/history/capacity/{series['series']}")).json()
    baseline: dict[str, Any] | None = told["baseline"]
    return baseline


async def test_the_stored_capacity_is_beside_the_history(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """Of the baseline that the latest test named, with its bounds; none where it named none, or one that is gone."""
    first = await measured(client, services, nursery, 64.0)
    assert await baseline_of_series(client) is None
    made = (await client.post("/v1/baselines", json={"name": "0.33.0", "run_id": first["id"]})).json()
    assert await baseline_of_series(client) is None
    clock.move(60)
    await measured(client, services, nursery, 48.0, baseline_id=made["id"])
    expected = {"name": "0.33.0", "run_id": first["id"], "level": 64.0, "low": 64.0, "high": None}
    assert await baseline_of_series(client) == expected
    await client.delete(f"/v1/baselines/{made['id']}")
    assert await baseline_of_series(client) is None


async def test_the_schedule_says_which_baseline_it_is(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """Also one that it was given after its latest test; of a capacity in another unit there is no line to draw."""
    made = (await client.post("/v1/schedules", json={"name": "n", "cron": "0 2 * * *", "request": CAPACITY})).json()
    run_id = (await client.post(f"/v1/schedules/{made['id']}/run")).json()["id"]
    services.supervisor.turn()
    nursery.latest.run()
    nursery.latest.end(0, capacity=found(64.0), result={"variable": "concurrency", "level": 64.0})
    services.supervisor.turn()
    for name, variable in (("rates", "request_rate_rps"), ("nights", "concurrency")):
        clock.move(60)
        other = await client.post("/v1/runs", json={**CAPACITY, "options": {"slo": f"ttft={len(name)}s"}})
        services.supervisor.turn()
        nursery.latest.run()
        nursery.latest.end(0, result={"variable": variable, "level": 70.0, "low": 64.0, "high": 80.0})
        services.supervisor.turn()
        held = (await client.post("/v1/baselines", json={"name": name, "run_id": other.json()["id"]})).json()
        request = {**CAPACITY, "baseline_id": held["id"]}
        changed = await client.put(
            f"/v1/schedules/{made['id']}", json={"name": "n", "cron": "0 2 * * *", "request": request}
        )
        assert changed.status_code == 200, changed.text
        baseline = await baseline_of_series(client)
        assert (None if baseline is None else baseline["name"]) == (name if variable == "concurrency" else None)
    assert (await client.get(f"/v1/runs/{run_id}")).json()["baseline_id"] is None


async def test_other_options_are_another_series(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """Tests that ask for something else are not held against each other."""
    for slo in ("ttft=500ms", "ttft=900ms"):
        await client.post("/v1/runs", json={**CAPACITY, "options": {"slo": slo}})
        services.supervisor.turn()
        nursery.latest.run()
        nursery.latest.end(0, capacity=found(64.0))
        services.supervisor.turn()
    assert len((await client.get("/v1/history/capacity")).json()["items"]) == 2


async def test_an_invalid_test_is_kept_and_counts_for_nothing(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery, clock: StillClock
) -> None:
    """A measurement that may not be believed stands in the history as such, and no later one is held against it."""
    for level, code in ((64.0, 0), (64, 0), (64, 0), (64, 0), (1, 3), (64, 0)):
        await client.post("/v1/runs", json=CAPACITY)
        services.supervisor.turn()
        nursery.latest.run()
        nursery.latest.end(code, capacity=found(level))
        services.supervisor.turn()
        clock.move(1)
    (series,) = (await client.get("/v1/history/capacity")).json()["items"]
    points = (await client.get(f"/v1/history/capacity/{series['series']}")).json()["items"]
    assert [(point["valid"], point["verdict"]) for point in points[-2:]] == [(False, "invalid"), (True, "no_change")]


async def test_live_metrics_are_those_of_the_run(
    client: httpx2.AsyncClient, services: Services, nursery: Nursery
) -> None:
    """What the process of a run measures is on the service's page while it measures and until the next one."""
    await client.post("/v1/runs", json=CAPACITY)
    services.supervisor.turn()
    nursery.latest.run()
    series = [[{"server": "vllm", "outcome": "completed"}, 7]]
    family = {"name": "loadgen_requests_total", "kind": "counter", "help": "h", "unit": "", "series": series}
    nursery.latest.tell("metrics", families=[family])
    assert 'loadgen_requests_total{outcome="completed",server="vllm"} 7.0' in (await client.get("/metrics")).text
    nursery.latest.end()
    services.supervisor.turn()
    assert "loadgen_requests_total" in (await client.get("/metrics")).text
    accepted = {"Accept": "application/openmetrics-text;version=1.0.0"}
    assert (await client.get("/metrics", headers=accepted)).text.endswith("# EOF\n")
