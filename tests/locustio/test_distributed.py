"""One master and three workers against the server of known truth."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.series_folder import SweepFolder
from loadgen.core.metrics.per_request import tpot_s, ttft_s
from loadgen.core.record import Outcome, RequestRecord
from loadgen.core.request import Phase
from loadgen.sim.script import Script
from loadgen.sim.truth import TruthServer, spawn_truth_server
from tests.locustio.swarms import LADDER_S, command, descendants_of, swarm
from tests.needs import namespaces

pytestmark = pytest.mark.slow

WORKERS = 3
LATENESS_S = 0.005
"""What 1 % of arrivals may be late by on an idle machine."""
_STALLS = 3


@pytest.fixture
def truth() -> Iterator[TruthServer]:
    """Answers of known timing."""
    with spawn_truth_server(Script(ttft_ms=20, gap_ms=5)) as server:
        yield server


def headless(out: Path, *arguments: object) -> list[str]:
    shared = ("--headless", "--json", "--quiet", "--output-tokens", 8, "--settle", "100ms", "--seed", 7, "--out", out)
    return command(*shared, *arguments)


def finished(line: list[str]) -> tuple[int, str]:
    done = subprocess.run(line, capture_output=True, text=True, timeout=LADDER_S, check=False)
    return done.returncode, done.stderr


def levels(out: Path) -> list[tuple[RunFolder, dict[str, Any], list[RequestRecord]]]:
    """Each level's folder, summary and measured records."""
    (sweep,) = out.iterdir()
    found = []
    for folder in SweepFolder(sweep).runs():
        summary = json.loads((folder.path / "summary.json").read_text())
        found.append((folder, summary, [one for one in folder.records() if one.phase is Phase.MEASURE]))
    return found


def test_a_plan_split_over_workers_is_the_plan(truth: TruthServer, tmp_path: Path) -> None:
    """Every request of the one-process plan once and at its instant; percentiles are those of all records together."""
    load = ("--url", truth.url, "--request-rate", "40,60", "--duration", "6s")
    code, said = finished(headless(tmp_path / "many", *load, "--processes", WORKERS, "--master-port", 0))
    assert code == 0, said
    log = truth.log().entries
    code, said = finished(headless(tmp_path / "one", *load))
    assert code == 0, said
    many, one = levels(tmp_path / "many"), levels(tmp_path / "one")
    total = sum(len(list(folder.records())) for folder, _, _ in many)
    assert len(log) == total == len({entry.request_id for entry in log})
    for (_, summary, records), (_, _, alone) in zip(many, one, strict=True):
        assert summary["client"]["workers"] == WORKERS
        assert len(records) == summary["requests"]["completed"] == summary["requests"]["planned"]
        assert {record.outcome for record in records} == {Outcome.COMPLETED}
        # A plan ends where its time does, which is an instant later or sooner in another run.
        common = {record.seq for record in records} & {record.seq for record in alone}
        assert len(common) >= max(len(records), len(alone)) - 2
        assert gaps(records, common) == pytest.approx(gaps(alone, common), abs=1e-6)
        for name, metric in (("ttft_s", ttft_s), ("tpot_s", tpot_s)):
            values = [value for record in records if (value := metric(record)) is not None]
            for percentile in (50, 90, 95, 99):
                expected = float(np.percentile(values, percentile))
                assert summary["latency"][name][f"p{percentile}"] == pytest.approx(expected, rel=1e-9)
        assert summary["latency"]["schedule_lag_s"]["p99"] <= allowed_s(summary)


def allowed_s(summary: dict[str, Any]) -> float:
    """How late 1 % may be: what is allowed on an idle machine, and more where this one kept whole processes waiting."""
    stall_s = summary["client"]["loop_stall_p99_s"]
    return max(LATENESS_S, _STALLS * (stall_s or 0.0))


def gaps(records: list[RequestRecord], seqs: set[int]) -> list[float]:
    """Seconds between one planned arrival and the next."""
    due_ns = [record.due_ns for record in sorted(records, key=lambda record: record.seq) if record.seq in seqs]
    return [float(gap) / 1e9 for gap in np.diff(np.array(due_ns, dtype=np.int64))]


def test_a_killed_worker_is_noticed_and_nothing_is_lost(truth: TruthServer, tmp_path: Path) -> None:
    """Its level ends, invalid; whatever the server has answered is in the records; the next level does without it."""
    load = ("--url", truth.url, "--concurrency", "6,3", "--duration", "6s", "--processes", WORKERS, "--master-port", 0)
    with subprocess.Popen(
        headless(tmp_path, *load), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as master:
        killing = threading.Thread(target=kill_one, args=(truth, master.pid))
        killing.start()
        said = master.communicate(timeout=LADDER_S)[1]
        killing.join()
    assert master.returncode == 3, said
    (hit, hit_summary, _), (_, next_summary, _) = levels(tmp_path)
    findings = {finding["kind"]: finding["severity"] for finding in hit_summary["verdict"]["findings"]}
    assert findings["worker_lost"] == "invalid"
    assert hit_summary["duration_s"] < 6
    assert next_summary["verdict"]["valid"]
    assert (hit_summary["client"]["workers"], next_summary["client"]["workers"]) == (3, 2)
    recorded = {record.request_id for folder, _, _ in levels(tmp_path) for record in folder.records()}
    assert {entry.request_id for entry in truth.log().entries if entry.request_id.startswith(hit.path.name)} <= recorded
    assert {entry.request_id for entry in truth.log().entries} == recorded


def kill_one(server: TruthServer, master: int) -> None:
    """Kills a worker once its level has been going on for a while."""
    while len(server.log().entries) < 150:
        time.sleep(0.05)
    os.kill(descendants_of(master, "loadgen.locustio.swarm")[0], signal.SIGKILL)


def test_a_master_that_dies_takes_its_load_with_it(truth: TruthServer, tmp_path: Path) -> None:
    """What was measured is saved by the process that conducts, and before long nobody sends any more."""
    load = ("--url", truth.url, "--concurrency", 3, "--duration", "90s", "--processes", 2, "--master-port", 0)
    out, environment = tmp_path / "runs", {**os.environ, "TMPDIR": str(tmp_path)}  # what it leaves behind is there
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(headless(out, *load), env=environment, **quiet) as master:
        wait_for(lambda: len(truth.log().entries) > 50)
        workers = descendants_of(master.pid, "loadgen.locustio.swarm")
        master.kill()
    wait_for(lambda: next(out.glob("*/levels/*/summary.json"), None) is not None)
    wait_for(lambda: not any(descendants_of(worker, "loadgen.wiring.workers") for worker in workers))
    ((_, summary, _),) = levels(out)
    assert "worker_lost" in {finding["kind"] for finding in summary["verdict"]["findings"]}
    sent = len(truth.log().entries)
    time.sleep(0.5)
    assert len(truth.log().entries) == sent
    for worker in workers:
        os.kill(worker, signal.SIGKILL)


def test_a_conductor_that_dies_takes_its_load_with_it(truth: TruthServer, tmp_path: Path) -> None:
    """Its workers' shares end, and the same workers are there for the next ladder."""
    shared = ("--processes", 2, "--master-port", 0, "--output-tokens", 8, "--quiet")
    with swarm("--url", truth.url, "--out", tmp_path, *shared) as locust:
        locust.until(lambda state: sum(worker["present"] for worker in state["workers"]) == 2)
        wait_for(lambda: locust.post("swarm", concurrency="4", duration="90s")["success"])
        locust.until(lambda state: state["progress"].get("ended", 0) > 5)
        workers = descendants_of(locust.process.pid, "loadgen.locustio.swarm")
        (conductor,) = descendants_of(locust.process.pid, "loadgen.locustio.conductor")
        os.kill(conductor, signal.SIGKILL)
        locust.until(lambda state: state["phase"] == "ended")
        wait_for(lambda: not any(descendants_of(worker, "loadgen.wiring.workers") for worker in workers))
        assert locust.post("swarm", concurrency="4", num_requests="20")["success"]
        state = locust.until(lambda state: state["phase"] == "ended")
        assert [row["requests"]["completed"] for row in state["rows"]] == [20]


def wait_for(reached: Callable[[], bool]) -> None:
    end_s = time.monotonic() + LADDER_S
    while not reached():
        assert time.monotonic() < end_s
        time.sleep(0.1)


def test_the_same_ladder_through_a_sweep_gives_the_same(truth: TruthServer, tmp_path: Path) -> None:
    """TTFT and TPOT by `loadgen sweep`, by Locust alone and by its workers lie within a millisecond of each other."""
    load = ("--url", truth.url, "--concurrency", "1,4", "--num-requests", 60)
    ways = {"alone": headless(tmp_path / "alone", *load)}
    ways["workers"] = headless(tmp_path / "workers", *load, "--processes", 2, "--master-port", 0)
    ways["sweep"] = [word if word != "locust" else "sweep" for word in ways["alone"] if word != "--headless"]
    ways["sweep"][ways["sweep"].index(str(tmp_path / "alone"))] = str(tmp_path / "sweep")
    for line in ways.values():
        code, said = finished(line)
        assert code == 0, said
    medians = {
        way: [(s["latency"]["ttft_s"]["p50"], s["latency"]["tpot_s"]["p50"]) for _, s, _ in levels(tmp_path / way)]
        for way in ways
    }
    for way in ("alone", "workers"):
        assert np.abs(np.array(medians[way]) - np.array(medians["sweep"])).max() < 0.001


def test_a_worker_of_another_machine_keeps_the_common_plan(truth: TruthServer, tmp_path: Path) -> None:
    """Its clock starts elsewhere; by the estimate of how far, its requests arrive as punctually as the others'."""
    elsewhere = namespaces("--time", "--monotonic", "5000", "--fork", "--kill-child")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    load = ("--url", truth.url, "--request-rate", 40, "--duration", "6s", "--master", "--expect-workers", 2)
    worker = command("--worker", "--master-port", port, "--quiet")
    workers = [subprocess.Popen(line) for line in (worker, [*elsewhere, *worker])]
    try:
        code, said = finished(headless(tmp_path, *load, "--master-port", port))
        assert code == 0, said
        assert [one.wait(LADDER_S) for one in workers] == [0, 0]
    finally:
        for one in workers:
            one.kill()
    ((_, summary, records),) = levels(tmp_path)
    assert summary["client"]["workers"] == 2
    assert summary["latency"]["schedule_lag_s"]["p99"] <= allowed_s(summary)
    arrived_ns = {entry.request_id: entry.recv_ns for entry in truth.log().entries}
    by_worker = [[arrived_ns[one.request_id] - one.sent_ns for one in records if one.seq % 2 == k] for k in (0, 1)]
    here, there = (float(np.median(ways_ns)) for ways_ns in by_worker)
    assert abs(here - there) < 2e6, "their axes are two milliseconds apart, or more"
