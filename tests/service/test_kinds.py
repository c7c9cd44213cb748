"""Every kind of run through a real service, with a real process and a simulated target: what it leaves is what the
command leaves."""

from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

from loadgen.sim.child import ChildServer
from tests.service.house import House, service, simulator

pytestmark = pytest.mark.slow

SMALL = {"num_requests": 12, "output_tokens": "8", "seed": 1}


@pytest.fixture(scope="module")
def target() -> Iterator[ChildServer]:
    with simulator("--speed", "4") as found:
        yield found


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with service(tmp_path_factory.mktemp("kinds") / "data") as found:
        yield found


def done(house: House, body: dict[str, Any], path: str = "/v1/runs") -> dict[str, Any]:
    answer = house.client.post(path, json=body)
    assert answer.status_code == 202, answer.text
    return house.ended(answer.json()["id"])


def check_files(house: House, run_id: str, schema: str, records: int) -> None:
    """Summary, report and records, as they are downloaded."""
    assert house.client.get(f"/v1/runs/{run_id}/summary").json()["schema"] == schema
    report = house.client.get(f"/v1/runs/{run_id}/report")
    assert report.status_code == 200, report.text
    assert report.text.startswith("<!DOCTYPE html>")
    packed = house.client.get(f"/v1/runs/{run_id}/records").content
    lines = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True).read().splitlines()
    assert len(lines) >= records


def test_a_run_and_its_baseline(house: House, target: ChildServer) -> None:
    """A second run is held against the first, passes a gate that holds and fails one that does not; both compare."""
    body = {"kind": "run", "target": {"url": target.url}, "options": {**SMALL, "concurrency": 2}}
    first = done(house, body)
    assert (first["state"], first["exit_code"]) == ("completed", 0), first
    check_files(house, first["id"], "loadgen.summary/1", 12)
    ids = []
    for name, gate in (("loose", "e2el_s.mean > 1000x"), ("tight", "e2el_s.mean > 0.000001x")):
        made = house.client.post("/v1/baselines", json={"name": name, "run_id": first["id"], "gates": [gate]})
        assert made.status_code == 201, made.text
        ids.append(made.json()["id"])
    loose, tight = (done(house, {**body, "baseline_id": baseline_id}) for baseline_id in ids)
    assert (loose["gate_failed"], loose["exit_code"]) == (False, 0), loose
    assert (tight["gate_failed"], tight["exit_code"]) == (True, 1), tight
    assert tight["result"]["comparison"]["levels"][0]["metrics"]["e2el_s.p50"]["ratio"] > 0
    compared = house.client.get("/v1/compare", params={"baseline": first["id"], "candidate": loose["id"]})
    assert compared.json()["schema"] == "loadgen.compare/1", compared.text


def test_a_sweep(house: House, target: ChildServer) -> None:
    """Each level is told of when it is over, and stands in the result."""
    options = {**SMALL, "concurrency": [1, 2], "settle": 0}
    run = done(house, {"kind": "sweep", "target": {"url": target.url}, "options": options})
    assert run["state"] == "completed", run
    assert [level["level"] for level in run["result"]["levels"]] == [1, 2]
    assert house.events(run["id"]).count("event: level\n") == 2
    check_files(house, run["id"], "loadgen.sweep/1", 24)


def test_a_capacity(house: House, target: ChildServer) -> None:
    """It becomes a point of the history, and a metric that stays."""
    options = {**SMALL, "slo": "ttft=30s", "slo_attainment": 0.5, "max": 2, "settle": 0, "allow_invalid": True}
    run = done(house, {"kind": "capacity", "target": {"url": target.url}, "options": options})
    assert run["state"] == "completed", run
    assert run["result"]["level"] == 2
    (series,) = house.client.get("/v1/history/capacity").json()["items"]
    assert series["latest"]["run_id"] == run["id"]
    assert 'variable="concurrency"' in house.client.get("/metrics").text
    check_files(house, run["id"], "loadgen.capacity/1", 24)


def test_an_experiment(house: House) -> None:
    """Simulated servers are started for it, and it ends with a comparison."""
    arms = {"baseline": {"sim": {"speed": 8}}, "eagle3": {"sim": {"speed": 8, "method": "eagle3", "draft_tokens": 3}}}
    options = {
        "name": "pays",
        "workload": {"synthetic": {"input_tokens": 16, "output_tokens": 8}, "ignore_eos": True},
        "load": {"concurrency": [1]},
        "level": {"num_requests": 12},
        "repeats": 1,
        "noise": "none",
        "cooldown": 0,
        "arms": arms,
    }
    run = done(house, {"name": "pays", "options": options}, "/v1/experiments")
    assert run["state"] == "completed", run
    assert [arm["name"] for arm in run["result"]["ladders"][0]["arms"]] == ["baseline", "eagle3"]
    check_files(house, run["id"], "loadgen.result/1", 24)


def test_a_target_that_is_not_there(house: House) -> None:
    """The run has failed, with the reason in words, and the log of its process is there."""
    run = done(house, {"kind": "run", "target": {"url": "http://127.0.0.1:9"}, "options": SMALL})
    assert (run["state"], run["reason"], run["exit_code"]) == ("failed", "target", 4)
    assert "127.0.0.1" in run["message"]
    assert house.client.get(f"/v1/runs/{run['id']}/log").status_code == 200


def test_cancelled_while_it_measures(house: House, target: ChildServer) -> None:
    """What was measured until then is kept, and its process has ended in order."""
    options = {"concurrency": 2, "num_requests": 5000, "output_tokens": "8"}
    run_id = house.ask(target.url, **options)
    house.wait(run_id, lambda run: bool(run["progress"] and run["progress"]["ended"] > 5))
    assert house.client.post(f"/v1/runs/{run_id}/cancel").status_code == 202
    run = house.ended(run_id)
    assert (run["state"], run["reason"], run["exit_code"]) == ("cancelled", "asked", 130)
    assert run["result"]["requests"]["completed"] > 5
    check_files(house, run_id, "loadgen.summary/1", 6)
