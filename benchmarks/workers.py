"""What `--workers` gives: how far two processes are from the truth, what they cost, and how much load they hold.

    python benchmarks/workers.py [--material DIR] [--repeats 3] [--workers 2] [--only bias|cost|held]

Three questions, each answered for one process and for several, in turns:

- **bias**: the load of `benchmarks/truth.py`, client against the server's log. The workers share the cores that the
  server leaves: on two cores they share one, and each can only be as punctual as that allows.
- **cost**: CPU of all processes of the client for 1,000 streamed events, their leader included, less what starting
  took; N workers have N times the load of one process, so that each has as much as that one. Where they cost as much
  for each event, N cores hold N times the load: this is the figure of a machine that has a core for the server alone
  and one for each worker.
- **held**: the highest step of a ladder of streams that was held: the run took at most 5 % longer than a client without
  any delay would need, and its verdict is valid. One process has a core of its own; several have all cores, which on a
  machine of two cores they share with the server. `server_core_ratio` is what the server took, so that
  `ratio_possible`, the cores that were left for several over the one core of one, is the most to expect there.

Prints tables on standard error and JSON on standard output. Run it on an otherwise idle machine.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import (
    DEFAULT_MATERIAL,
    Cores,
    build,
    free_port,
    host,
    loadgen_run,
    median_of,
    print_table,
    raise_file_limit,
    ratio,
    truth_server,
)
from truth import Case, judged, read_log, seen_of

SCHEMA = "loadgen.benchmark.workers/1"
BIAS = (
    Case("200 streams", requests=400, tokens=200, ttft_ms=100, gap_ms=20, concurrency=200),
    Case("poisson 500/s", requests=5000, tokens=8, ttft_ms=50, gap_ms=20, concurrency=200, rate_rps=500, poisson=True),
)
COST = Case("cost", requests=1000, tokens=200, ttft_ms=100, gap_ms=20, concurrency=250)
LADDER = (500, 1000, 1400, 1800, 2200, 2600, 3000, 3400, 4000, 5000)
HELD = Case("held", requests=0, tokens=200, ttft_ms=100, gap_ms=20, concurrency=0)
LONGER_RATIO = 1.05
_TICKS = os.sysconf("SC_CLK_TCK")


class Bench:
    """The server and where everything runs. `alone` are the cores of one process, `together` those of several."""

    def __init__(self, server: Path, *, workers: int) -> None:
        self.server, self.workers, self.cores = server, workers, Cores.chosen()
        self.alone, self.apart, self.together = {self.cores.client}, self.cores.apart, self.cores.together(workers)

    def run(self, case: Case, workers: int, cores: set[int]) -> dict[str, Any]:
        """One run: figures against the log, and what it took."""
        with tempfile.TemporaryDirectory() as name:
            folder, port = Path(name), free_port()
            log = folder / "log.csv"
            options = {"ttft_ms": case.ttft_ms, "itl_ms": case.gap_ms, "tokens": case.tokens}
            with truth_server(self.server, self.cores.server, port, log, **options) as pid:
                used, run, summary = loadgen_run(port, cores, folder / "runs", *_shape(case), "--workers", workers)
                server_cpu_s = _cpu_s(pid)
            seen = seen_of(run.records())
            figures = judged(case, seen, read_log(log))
            load_s = (max(each.last_ns for each in seen) - min(each.sent_ns for each in seen)) / 1e9
            return figures | {
                "lost": case.requests - len(seen),
                "cpu_s": used.cpu_s,
                "busiest_worker_cpu_ratio": summary["client"]["cpu_ratio"],
                "server_core_ratio": server_cpu_s / load_s,
                "valid": float(summary["verdict"]["valid"]),
                "invalid_for": [
                    each["kind"] for each in summary["verdict"]["findings"] if each["severity"] == "invalid"
                ],
            }

    def start_cpu_s(self, workers: int, cores: set[int]) -> float:
        """CPU of a run of next to nothing: starting processes, looking at data and target."""
        return float(
            self.run(replace(COST, requests=2 * workers, tokens=2, concurrency=workers), workers, cores)["cpu_s"]
        )


def _shape(case: Case) -> list[str | float]:
    shape: list[str | float] = ["--num-requests", case.requests, "--output-tokens", case.tokens]
    if case.rate_rps is None:
        return [*shape, "--concurrency", case.concurrency]
    return [*shape, "--request-rate", case.rate_rps, "--burstiness", 1 if case.poisson else "inf"]


def _cpu_s(pid: int) -> float:
    """User and system time that a process has taken so far."""
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / _TICKS


def bias(bench: Bench, repeats: int) -> dict[str, Any]:
    """Both, in turns, on the cores that the server leaves."""
    found = {}
    for case in BIAS:
        samples: dict[int, list[dict[str, Any]]] = {1: [], bench.workers: []}
        for _ in range(repeats):
            for workers, taken in samples.items():
                figures = bench.run(case, workers, bench.apart)
                taken.append({name: value for name, value in figures.items() if name != "invalid_for"})
        found[case.name] = {str(workers): median_of(taken) for workers, taken in samples.items()}
        names = ("ttft_bias_ms", "tpot_bias_ms", "lateness_ms")
        one, several = (found[case.name][str(workers)] for workers in samples)
        rows = [
            (f"{name} {key}", one[name][key], several[name][key]) for name in names if name in one for key in one[name]
        ]
        print_table(f"bias, {case.name}", ("figure", "1 process", f"{bench.workers} workers"), rows)
    return found


def cost(bench: Bench, repeats: int) -> dict[str, Any]:
    """CPU of all processes together for each event, where each has as much to do."""
    samples: dict[int, list[dict[str, Any]]] = {1: [], bench.workers: []}
    for _ in range(repeats):
        for workers, taken in samples.items():
            start_s = bench.start_cpu_s(workers, bench.apart)
            case = replace(COST, requests=COST.requests * workers, concurrency=COST.concurrency * workers)
            cpu_s = bench.run(case, workers, bench.apart)["cpu_s"] - start_s
            events = case.requests * case.tokens
            taken.append({"cpu_ms_per_1000_events": cpu_s * 1e6 / events, "start_cpu_s": start_s})
    found: dict[str, Any] = {str(workers): median_of(taken) for workers, taken in samples.items()}
    one, several = (found[str(workers)]["cpu_ms_per_1000_events"] for workers in samples)
    found["load_ratio_with_a_core_each"] = bench.workers * one / several
    rows = [(name, found["1"][name], found[str(bench.workers)][name]) for name in found["1"]]
    rows.append(("load ratio with a core each", 1.0, found["load_ratio_with_a_core_each"]))
    print_table("cost", ("figure", "1 process", f"{bench.workers} workers"), rows)
    return found


def held(bench: Bench) -> dict[str, Any]:
    """How far up the ladder one process comes, and several."""
    found: dict[str, Any] = {}
    for workers, cores in ((1, bench.alone), (bench.workers, bench.together)):
        steps = _climb(lambda case, workers=workers, cores=cores: bench.run(case, workers, cores))
        highest = [step for step in steps if step["held"]]
        found[str(workers)] = {
            "cores": sorted(cores),
            "streams": highest[-1]["streams"] if highest else None,
            "steps": steps,
        }
        rows = [
            (step["streams"], step["duration_over_ideal"], step["busiest_worker_cpu_ratio"], step["server_core_ratio"])
            for step in steps
        ]
        print_table(
            f"held, {workers} of {sorted(cores)}", ("streams", "time over ideal", "worker CPU", "server CPU"), rows
        )
    one, several = found["1"], found[str(bench.workers)]
    shares = bench.cores.server in bench.together
    server = max((step["server_core_ratio"] for step in several["steps"] if step["held"]), default=0.0)
    found["ratio"] = ratio(several["streams"], one["streams"])
    found["ratio_possible"] = min(float(bench.workers), len(bench.together) - (server if shares else 0.0))
    rows = [("held by several / held by one", found["ratio"]), ("possible beside the server", found["ratio_possible"])]
    print_table("held", ("figure", ""), rows)
    return found


def _climb(run: Callable[[Case], dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of the ladder up to the first that is not held."""
    steps = []
    for streams in LADDER:
        figures = run(replace(HELD, concurrency=streams, requests=2 * streams))
        in_time = figures["duration_over_ideal"] <= LONGER_RATIO
        held = bool(in_time and figures["valid"] and not figures["lost"])
        steps.append({"streams": streams, "held": held} | figures)
        if not held:
            break
    return steps


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=["bias", "cost", "held"], action="append")
    options = parser.parse_args()
    raise_file_limit()
    with tempfile.TemporaryDirectory() as folder:
        (server,) = build(options.material, Path(folder), "truth_server")
        bench = Bench(server, workers=options.workers)
        parts = {
            "bias": lambda: bias(bench, options.repeats),
            "cost": lambda: cost(bench, options.repeats),
            "held": lambda: held(bench),
        }
        found = {name: part() for name, part in parts.items() if not options.only or name in options.only}
    print(json.dumps({"schema": SCHEMA, "host": host(), "workers": options.workers} | found, indent=2))


if __name__ == "__main__":
    main()
