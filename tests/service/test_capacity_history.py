"""Capacity tests become a history, each held against those before it."""

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
