"""Whether Locust's workers keep a plan, and whether a ladder through Locust is that of `loadgen sweep`.

    python benchmarks/locust.py [--material DIR] [--repeats 3] [--workers 3] [--only plan|ladder]
                                [--rate 150] [--seconds 30] [--requests 256]

Two questions, against the reference server of known emission times:

- **plan**: a master and several workers, each a process of Locust with a process that drives its share, send an open
  loop, at constant gaps and at Poisson's. Said are its totals from the plan to the server's log, how late requests
  left, the rates at which they left and came over the one that was planned, TTFT against the log, and how far the
  summary's percentiles are from those of all records read together. Times are medians over the repeats; totals are
  sums, and `percentile_error_ms` and the largest lateness the worst of all.
- **ladder**: the same requests at the same levels by `loadgen sweep`, by Locust alone and by its workers, in turns,
  backwards every other time. TTFT and TPOT of each way are means over the repeats with their 95 % intervals; a way
  agrees with the sweep where the 95 % interval of their ratio, paired request by request, holds 1. Of twenty that are
  the same, one is expected beyond its interval.

Workers have a core each where there are as many beside the server's; else all share all cores, the server's included.
Prints tables on standard error and JSON on standard output. Run it on an otherwise idle machine.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from common import (
    DEFAULT_MATERIAL,
    Cores,
    build,
    command_line,
    free_port,
    host,
    median_of,
    percentile,
    print_table,
    raise_file_limit,
    run_pinned,
    truth_server,
)
from truth import Case, judged, read_log, seen_of

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.series_folder import SweepFolder
from loadgen.core.analysis.columns import Columns
from loadgen.core.analysis.ladder import level_of
from loadgen.core.comparison.cell import Cell, cell_of
from loadgen.core.comparison.ratio import ratio
from loadgen.core.metrics.per_request import e2el_s, tpot_s, ttft_s
from loadgen.core.metrics.summary import Summary
from loadgen.core.record import RequestRecord
from loadgen.core.stats.student import critical

SCHEMA = "loadgen.benchmark.locust/1"
SEED = 7
LADDER = (2, 8, 32)
COMPARED = ("ttft_s.p50", "ttft_s.p90", "tpot_s.p50", "tpot_s.p90")
PERCENTILES = (50, 75, 90, 95, 99)
CONFIDENCE_RATIO = 0.95
Log = dict[str, dict[str, str]]


class Bench:
    """The server, where everything runs, and Locust's workers."""

    def __init__(self, server: Path, *, workers: int) -> None:
        self.server, self.workers, self.cores = server, workers, Cores.chosen()
        self.clients = self.cores.together(workers)
        self.locust = ("locust", "--headless")
        self.crew = (*self.locust, "--processes", workers, "--master-port", 0)

    @contextmanager
    def measured(self, case: Case, command: str, *options: str | float) -> Iterator[tuple[list[RunFolder], Log]]:
        """The levels of a ladder, as long as the block lasts, and the server's log."""
        with tempfile.TemporaryDirectory() as name:
            folder, port = Path(name), free_port()
            log, out = folder / "log.csv", folder / "runs"
            known = {"ttft_ms": case.ttft_ms, "itl_ms": case.gap_ms, "tokens": case.tokens}
            load = ("--num-requests", case.requests, "--output-tokens", case.tokens, "--seed", SEED, "--quiet")
            with truth_server(self.server, self.cores.server, port, log, **known):
                run_pinned(command_line(command, port, out, *load, *options), self.clients)
            (sweep,) = out.iterdir()
            yield SweepFolder(sweep).runs(), read_log(log)


def plan(bench: Bench, *, rate_rps: float, seconds: float, repeats: int) -> dict[str, Any]:
    """An open loop by several workers, at constant gaps and at Poisson's."""
    requests = round(rate_rps * seconds)
    load = {"requests": requests, "tokens": 8, "ttft_ms": 50, "gap_ms": 20, "concurrency": 0, "rate_rps": rate_rps}
    cases = (Case("constant", **load), Case("Poisson", **load, poisson=True))
    found = {case.name: _over_repeats([_planned(bench, case) for _ in range(repeats)]) for case in cases}
    rows = []
    for name, value in found["constant"].items():
        for key, item in value.items() if isinstance(value, dict) else [("", value)]:
            other = found["Poisson"][name]
            rows.append((f"{name} {key}".strip(), item, other[key] if isinstance(other, dict) else other))
    print_table(f"plan, {bench.workers} workers, {rate_rps:g} requests/s for {seconds:g} s", ("figure", *found), rows)
    return found


def _planned(bench: Bench, case: Case) -> dict[str, Any]:
    """One repeat."""
    assert case.rate_rps is not None
    command, *options = bench.crew
    shape = ("--request-rate", case.rate_rps, "--burstiness", 1 if case.poisson else "inf", "--warmup-requests", 0)
    with bench.measured(case, command, *options, *shape) as ((run,), log):
        summary, records = run.load_summary(), list(run.records())
    counts = summary.requests
    due_ns = [record.due_ns for record in records]
    came_ns = [int(row["recv_ns"]) for row in log.values()]
    figures = judged(case, seen_of(records), log)
    return {
        "totals": {
            "asked": case.requests,
            "planned": counts.planned,
            "sent": counts.sent,
            "settled": counts.completed + counts.failed + counts.cancelled + counts.dropped,
            "completed": counts.completed,
            "recorded": len({record.request_id for record in records}),
            "answered by the server": len(log),
        },
        "workers": summary.client.workers,
        "valid": float(summary.verdict.valid),
        "lateness_ms": figures["lateness_ms"],
        "sent_over_offered": figures["sent_over_offered"],
        "came_over_offered": (max(due_ns) - min(due_ns)) / (max(came_ns) - min(came_ns)),
        "ttft_bias_ms": figures["ttft_bias_ms"],
        "percentile_error_ms": _percentile_error_ms(summary, records),
        "server_late_ms": figures["server_late_ms"],
    }


def _percentile_error_ms(summary: Summary, records: Sequence[RequestRecord]) -> float:
    """The farthest that a percentile of the summary is from that of all records read together."""
    metrics: dict[str, Callable[[RequestRecord], float | None]] = {"ttft_s": ttft_s, "tpot_s": tpot_s, "e2el_s": e2el_s}
    errors_s = []
    for name, metric in metrics.items():
        values_s = [value for record in records if (value := metric(record)) is not None]
        merged = getattr(summary.latency, name)
        known = [(p, merged_s) for p in PERCENTILES if (merged_s := getattr(merged, f"p{p}")) is not None]
        errors_s += [abs(merged_s - percentile(values_s, p)) for p, merged_s in known]
    return max(errors_s) * 1e3


def _over_repeats(samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians; what has to be exact as a sum, or as the worst."""
    found = median_of(samples)
    found["totals"] = {name: sum(sample["totals"][name] for sample in samples) for name in found["totals"]}
    found["percentile_error_ms"] = max(sample["percentile_error_ms"] for sample in samples)
    found["lateness_ms"]["max"] = max(sample["lateness_ms"]["max"] for sample in samples)
    return found


def ladder(bench: Bench, *, requests: int, repeats: int) -> dict[str, Any]:
    """The same levels by each way, in turns."""
    case = Case("ladder", requests=requests, tokens=16, ttft_ms=50, gap_ms=10, concurrency=0)
    ways = {"sweep": ("sweep",), "locust": bench.locust, "workers": bench.crew}
    cells: dict[str, list[Cell]] = {way: [] for way in ways}
    for repeat in range(repeats):
        for way, (command, *options) in list(ways.items())[:: -1 if repeat % 2 else 1]:
            levels = ("--concurrency", ",".join(map(str, LADDER)))
            with bench.measured(case, command, *options, *levels) as (runs, _):
                cells[way] += [_cell(run, way, repeat) for run in runs]
    found = [
        row for level in LADDER for metric in COMPARED for row in _compared(cells, level, metric, baseline="sweep")
    ]
    for level in LADDER:
        rows = [
            (row["metric"], row["way"], _shown(row, "ms", "low_ms", "high_ms"), _shown(row, "ratio", "low", "high"))
            for row in found
            if row["level"] == level
        ]
        title = f"concurrency {level}, {requests} requests, {repeats} times"
        print_table(title, ("metric", "way", "ms", "over sweep"), rows)
    compared = [row for row in found if row["agrees"] is not None]
    agreement = {
        "compared": len(compared),
        "agreeing": sum(row["agrees"] for row in compared),
        "farthest_ratio": max((row["ratio"] for row in compared), key=lambda value: abs(value - 1), default=None),
    }
    print_table("ladder", ("figure", ""), list(agreement.items()))
    return {"levels": found} | agreement


def _cell(run: RunFolder, way: str, repeat: int) -> Cell:
    manifest, columns = run.load_manifest(), Columns({})
    for record in run.records():
        columns.observe(record)
    return cell_of(columns.table(), run.load_summary(), arm=way, level=level_of(manifest), repeat=repeat)


def _compared(cells: dict[str, list[Cell]], level: float, metric: str, *, baseline: str) -> Iterator[dict[str, Any]]:
    """Each way's value with its interval, and its ratio to the baseline's."""
    at = {way: [cell for cell in found if cell.level == level] for way, found in cells.items()}
    name, _, statistic = metric.partition(".p")
    for way, found in at.items():
        values_ms = [float(np.nanpercentile(cell.columns[name], float(statistic))) * 1e3 for cell in found]
        value, low, high = _interval(values_ms)
        row = {"level": level, "metric": metric, "way": way, "ms": value, "low_ms": low, "high_ms": high}
        against = None if way == baseline else ratio(at[baseline], found, metric)
        if against is None:
            yield row | dict.fromkeys(("ratio", "low", "high", "agrees"))
            continue
        told = against.estimate
        agrees = told.low <= 1 <= told.high
        yield row | {"ratio": told.value, "low": told.low, "high": told.high, "agrees": agrees}


def _shown(row: dict[str, Any], value: str, low: str, high: str) -> str | None:
    """A value with its interval, where there is one."""
    if row[value] is None or row[low] is None:
        return None if row[value] is None else f"{row[value]:.4g}"
    return f"{row[value]:.4g} [{row[low]:.4g}, {row[high]:.4g}]"


def _interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """Mean with its interval by Student's t; of one value none."""
    mean = fmean(values)
    if len(values) < 2:
        return mean, None, None
    half = critical(CONFIDENCE_RATIO, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return mean, mean - half, mean + half


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=150.0, help="requests a second of the plan")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of the plan")
    parser.add_argument("--requests", type=int, default=256, help="requests of each level of the ladder")
    parser.add_argument("--only", choices=["plan", "ladder"], action="append")
    options = parser.parse_args()
    raise_file_limit()
    with tempfile.TemporaryDirectory() as folder:
        (server,) = build(options.material, Path(folder), "truth_server")
        bench = Bench(server, workers=options.workers)
        parts = {
            "plan": lambda: plan(bench, rate_rps=options.rate, seconds=options.seconds, repeats=options.repeats),
            "ladder": lambda: ladder(bench, requests=options.requests, repeats=options.repeats),
        }
        found = {name: part() for name, part in parts.items() if not options.only or name in options.only}
    machine = host() | {"clients_on": sorted(bench.clients), "server_on": bench.cores.server}
    print(json.dumps({"schema": SCHEMA, "host": machine, "workers": options.workers} | found, indent=2))


if __name__ == "__main__":
    main()
