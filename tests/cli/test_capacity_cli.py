"""`loadgen capacity` as a user calls it."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loadgen.cli.app import run_command_line
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Job, Limits
from loadgen.core.simulation.loop import Simulation, closed_loop, open_loop
from loadgen.core.simulation.step_time import StepTime
from loadgen.sim.script import Script
from loadgen.sim.truth import TruthServer, spawn_truth_server
from loadgen.wiring.sim import spawn_simulator

QUICK = ("--slo-attainment", 0.5, "--output-tokens", 4, "--settle", 0, "--warmup-requests", 0, "--seed", 1)


@pytest.fixture(scope="module")
def server() -> Iterator[TruthServer]:
    with spawn_truth_server(Script(ttft_ms=20, gap_ms=2, tokens=4)) as running:
        yield running


def command(url: str, out: Path, *arguments: object) -> list[str]:
    """The command line."""
    return [sys.executable, "-m", "loadgen", "capacity", "--url", url, "--out", str(out), *map(str, arguments)]


def capacity(url: str, out: Path, *arguments: object, timeout_s: float = 60) -> "subprocess.CompletedProcess[str]":
    """The command, ended."""
    return subprocess.run(command(url, out, *arguments), capture_output=True, text=True, timeout=timeout_s)


def stored(out: Path) -> tuple[Path, dict[str, Any]]:
    """The folder of the only search, and what it came to."""
    (path,) = out.iterdir()
    return path, json.loads((path / "capacity.json").read_text())


@pytest.mark.slow
def test_a_server_that_meets_its_objectives_everywhere(
    server: TruthServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The highest level is the capacity; JSON, folder and a later report say the same, each probe is a run."""
    done = capacity(server.url, tmp_path, "--slo", "ttft=500ms", *QUICK, "--max", 2, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == ["schema", "variable", "capacity", "attainment", "next_failed", "probes"]
    assert (found["schema"], found["variable"], found["next_failed"]) == ("loadgen.capacity/1", "concurrency", None)
    assert (found["capacity"]["level"], found["capacity"]["low"], found["capacity"]["high"]) == (2, 2, None)
    assert [(probe["level"], probe["verdict"]) for probe in found["probes"]] == [(1, "pass"), (2, "pass")]
    assert "concurrency 2: pass: 20 of 20 requests met the objectives" in done.stderr
    path, kept = stored(tmp_path)
    assert kept == found
    assert path.name.startswith("capacity-"), "told from a run's folder by its name"
    assert [probe["run_id"] for probe in kept["probes"]] == sorted(run.name for run in (path / "probes").iterdir())
    page = tmp_path.parent / f"{tmp_path.name}.html"
    assert run_command_line(["report", str(path), "--json", "--html", str(page)]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert "Capacity concurrency 2 or more" in page.read_text()
    assert run_command_line(["export", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert run_command_line(["export", str(path), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["search_id"] for row in rows} == {path.name}
    told = [(row["probe"], row["level"], row["repeat"], row["verdict"], row["capacity"]) for row in rows]
    assert told == [("1", "1", "1", "pass", "false"), ("2", "2", "1", "pass", "true")]
    assert [float(row["slo.attainment_ratio"]) for row in rows] == [1.0, 1.0]
    assert run_command_line(["export", str(path), "--format", "csv", "--what", "requests"]) == 0
    requests = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {(row["probe"], row["level"]) for row in requests} == {("1", "1"), ("2", "2")}


def test_a_first_level_that_misses_ends_with_one(server: TruthServer, tmp_path: Path) -> None:
    """Every request misses a limit below the server's TTFT: by which objective and how much is said."""
    rate = ("--variable", "request-rate", "--start", 50, "--burstiness", "inf")
    done = capacity(server.url, tmp_path, "--slo", "ttft=5ms", *QUICK, *rate, "--allow-invalid")
    assert done.returncode == 1, done.stderr
    assert "✗ No capacity: the first level misses the objectives" in done.stdout
    assert "50 requests/s fails" in done.stdout
    assert "over 5 ms" in done.stdout
    assert stored(tmp_path)[1]["capacity"] is None


def wait_for(happened: Callable[[], object]) -> None:
    """Returns once it has, and after half a minute at the latest."""
    end = time.monotonic() + 30
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)


@pytest.mark.slow
def test_an_interrupted_search_reports_what_it_has(server: TruthServer, tmp_path: Path) -> None:
    """The probe that ended stays on disk and in the report; the one that was cut short decides nothing."""
    line = command(server.url, tmp_path, "--slo", "ttft=500ms", *QUICK, "--duration", "2s", "--max", 4)
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: list(tmp_path.glob("*/probes/002-*/manifest.json")))
        before = len(server.log().entries)
        wait_for(lambda: len(server.log().entries) > before)
        os.kill(process.pid, signal.SIGINT)
        shown, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert "✗ Not finished; at least concurrency 1" in shown
    assert [probe["verdict"] for probe in stored(tmp_path)[1]["probes"]] == ["pass", "cut_short"]


STEP_S, SLOTS, TOKENS = 0.04, 4, 8


def engine() -> Engine:
    """The simulated server without a clock."""
    limits = Limits(kv_blocks=100_000, block_tokens=16, max_sequences=SLOTS, token_budget=8192, prefix_caching=False)
    step = StepTime(fixed_s=STEP_S, per_token_s=0.0, per_context_token_s=0.0)
    return Engine(target=step, limits=limits, rng=np.random.default_rng(1))


def jobs(count: int) -> list[Job]:
    """Requests as the command sends them."""
    return [Job(key=key, prompt_tokens=16, output_tokens=TOKENS) for key in range(count)]


def attained(simulation: Simulation, limit_s: float) -> float:
    """The share whose first token was in time, without the first few."""
    later = [request for request in simulation.requests if request.key >= 4 * SLOTS]
    return sum(request.ttft_s <= limit_s for request in later) / len(later)


def at_rate(rate_rps: float) -> Simulation:
    """Evenly spaced arrivals for long enough to know what they lead to."""
    return open_loop(engine(), ((round(place * 1e9 / rate_rps), job) for place, job in enumerate(jobs(400))))


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["concurrency", "request-rate"])
def test_the_capacity_of_a_simulated_server_is_that_of_its_model(variable: str, tmp_path: Path) -> None:
    """Four slots and fixed steps: the interval that is found holds the capacity in virtual time, and is narrow."""
    limit_s = 4.5 * STEP_S
    more: tuple[object, ...] = ("--start", 3, "--max", 12, "--precision", 0.25)
    if variable == "request-rate":
        more = ("--variable", variable, "--burstiness", "inf", "--start", 7.5, "--precision", 0.5, "--gpus", 2)
    arguments = ("--step-time", f"{STEP_S * 1e3:g}ms", "--max-num-seqs", str(SLOTS))
    with spawn_simulator(*arguments) as simulator:
        done = capacity(
            simulator.url,
            tmp_path,
            *("--slo", f"ttft={limit_s * 1e3:g}ms", "--slo-attainment", 0.9, "--seed", 5, "--json"),
            *("--output-tokens", TOKENS, "--input-tokens", 16, *more),
            timeout_s=110,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["capacity"]
    if variable == "concurrency":
        good = [
            level
            for level in range(1, 13)
            if attained(closed_loop(engine(), jobs(40 * level), concurrency=level), limit_s) >= 0.9
        ]
        truth: float = max(good)
    else:
        rates = np.geomspace(5, 30, 128).tolist()
        truth = rates[bisect(rates, -0.9, key=lambda rate: -attained(at_rate(rate), limit_s)) - 1]
        assert found["per_gpu"] == found["level"] / 2
    assert found["low"] <= truth < found["high"] <= 2 * found["low"]
