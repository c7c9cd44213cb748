"""How far `loadgen run` is from the truth, and what it costs, beside the physical floor of a client.

    python benchmarks/truth.py [--material DIR] [--repeats 3] [--only NAME]

A reference server of known emission times runs on one core; on another, alternately, the reference client (a thread of
C that stamps every event and does nothing else) and `loadgen run` put the same load on it. Both are compared with the
server's log, request by request. The reference sources are not part of this repository: `--material` or
LOADGEN_TEST_MATERIAL names the folder that holds `truth-server/`.

Prints tables on standard error and JSON on standard output. Bias is the client's figure minus the log's. Ratios to the
floor of the same session are what to compare between machines. Run it on an otherwise idle machine: `server_late_ms`
beside `floor` shows whether it was.
"""

import argparse
import csv
import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    percentile,
    print_table,
    raise_file_limit,
    ratio,
    run_pinned,
    truth_server,
)

from loadgen.core.record import RequestRecord

SCHEMA = "loadgen.benchmark.truth/1"


@dataclass(frozen=True)
class Case:
    """One load. Closed loop when `rate_rps` is None."""

    name: str
    requests: int
    tokens: int
    ttft_ms: float
    gap_ms: float
    concurrency: int
    rate_rps: float | None = None
    poisson: bool = False

    @property
    def ideal_s(self) -> float | None:
        """How long a client without any delay of its own needs for a closed loop."""
        if self.rate_rps is not None:
            return None
        rounds = self.requests / self.concurrency
        return rounds * (self.ttft_ms + (self.tokens - 1) * self.gap_ms) / 1e3


CASES = (
    Case("200 streams", requests=400, tokens=200, ttft_ms=100, gap_ms=20, concurrency=200),
    Case("1000 streams", requests=2000, tokens=200, ttft_ms=100, gap_ms=20, concurrency=1000),
    Case("constant 500/s", requests=5000, tokens=8, ttft_ms=50, gap_ms=20, concurrency=200, rate_rps=500),
    Case("poisson 500/s", requests=5000, tokens=8, ttft_ms=50, gap_ms=20, concurrency=200, rate_rps=500, poisson=True),
)


@dataclass(frozen=True)
class Seen:
    """One request as a client saw it, ns on the client's axis."""

    request_id: str
    due_ns: int | None
    sent_ns: int
    first_ns: int
    last_ns: int


def seen_of(records: Iterable[RequestRecord]) -> list[Seen]:
    """Those that were answered, in the order in which they were sent."""
    return [
        Seen(record.request_id, record.due_ns, record.sent_ns, record.first_ns, record.last_ns)
        for record in sorted(records, key=lambda record: record.sent_ns or 0)
        if record.sent_ns is not None and record.first_ns is not None and record.last_ns is not None
    ]


def read_log(path: Path) -> dict[str, dict[str, str]]:
    """The server's log by request id."""
    with path.open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def judged(case: Case, seen: Sequence[Seen], log: dict[str, dict[str, str]]) -> dict[str, Any]:
    """The figures of one repeat: bias against the log, duration, rate and lateness."""
    ttft_bias, tpot_bias, ttft, true_ttft, server_late = [], [], [], [], []
    for request in seen:
        row = log[request.request_id]
        true_first = (int(row["first_chunk_ns"]) - int(row["recv_ns"])) / 1e6
        true_tpot = (int(row["last_chunk_ns"]) - int(row["first_chunk_ns"])) / 1e6 / (case.tokens - 1)
        server_late.append(true_first - case.ttft_ms)
        first = (request.first_ns - request.sent_ns) / 1e6
        ttft.append(first)
        true_ttft.append(true_first)
        ttft_bias.append(first - true_first)
        tpot_bias.append((request.last_ns - request.first_ns) / 1e6 / (case.tokens - 1) - true_tpot)
    first_sent = min(request.sent_ns for request in seen)
    duration_s = (max(request.last_ns for request in seen) - first_sent) / 1e9
    half = len(seen) // 2
    figures: dict[str, Any] = {
        "requests": len(seen),
        "ttft_bias_ms": {"p50": percentile(ttft_bias, 50), "p99": percentile(ttft_bias, 99)},
        "ttft_percentile_error_ms": {f"p{p}": percentile(ttft, p) - percentile(true_ttft, p) for p in (50, 99)},
        "tpot_bias_ms": {"p50": percentile(tpot_bias, 50), "p99": percentile(tpot_bias, 99)},
        "tpot_bias_ratio": percentile(tpot_bias, 50) / case.gap_ms,
        "ttft_bias_growth_ms": percentile(ttft_bias[half:], 50) - percentile(ttft_bias[:half], 50),
        "server_late_ms": {"p50": percentile(server_late, 50), "p99": percentile(server_late, 99)},
        "duration_over_ideal": None if case.ideal_s is None else duration_s / case.ideal_s,
    }
    if case.rate_rps is not None:
        late = [(request.sent_ns - request.due_ns) / 1e6 for request in seen if request.due_ns is not None]
        due = [request.due_ns for request in seen if request.due_ns is not None]
        sent = [request.sent_ns for request in seen]
        figures["lateness_ms"] = {"p50": percentile(late, 50), "p99": percentile(late, 99), "max": max(late)}
        figures["sent_over_offered"] = (max(due) - min(due)) / (max(sent) - min(sent))
    return figures


def floor_repeat(case: Case, floor: Path, port: int, cores: Cores, folder: Path) -> tuple[dict[str, Any], list[Seen]]:
    """The reference client under this load."""
    result = folder / "floor.json"
    command: list[str | Path] = [floor, *map(str, (port, case.concurrency, case.requests, case.tokens)), result]
    if case.rate_rps is not None:
        command += [f"{case.rate_rps:g}", "poisson" if case.poisson else "constant", "1"]
    used = run_pinned(command, cores.client)
    rows = json.loads(result.read_text())["rows"]
    seen = [
        Seen(
            request_id=row["id"],
            due_ns=row["planned_ns"] if case.rate_rps is not None else None,
            sent_ns=row["start_ns"],
            first_ns=row["start_ns"] + round(row["ttft_ms"] * 1e6),
            last_ns=row["start_ns"] + round(row["e2e_ms"] * 1e6),
        )
        for row in rows
    ]
    return {"cpu_ms_per_1000_events": used.cpu_s * 1e6 / (case.requests * case.tokens)}, seen


def loadgen_repeat(case: Case, port: int, cores: Cores, folder: Path) -> tuple[dict[str, Any], list[Seen]]:
    """`loadgen run` under this load."""
    shape: list[str | float] = ["--num-requests", case.requests, "--output-tokens", case.tokens]
    if case.rate_rps is None:
        shape += ["--concurrency", case.concurrency]
    else:
        shape += ["--request-rate", case.rate_rps, "--burstiness", 1 if case.poisson else "inf"]
    used, run, summary = loadgen_run(port, cores.client, folder / "runs", *shape)
    start, _, _ = loadgen_run(
        port, cores.client, folder / "start", "--num-requests", 1, "--output-tokens", 2, "--concurrency", 1
    )
    seen, stamp_lags = [], []
    for record in sorted(run.records(), key=lambda record: record.sent_ns or 0):
        if record.sent_ns is None or record.first_ns is None or record.last_ns is None:
            sys.exit(f"{record.request_id} ended as {record.outcome}: {record.failure}")
        if len(record.event_ns) != case.tokens:
            sys.exit(f"{record.request_id} has {len(record.event_ns)} events, the server sent {case.tokens}")
        seen.append(Seen(record.request_id, record.due_ns, record.sent_ns, record.first_ns, record.last_ns))
        if record.stamp_lag_ns is not None:
            stamp_lags.append(record.stamp_lag_ns / 1e6)
    events = case.requests * case.tokens
    client = run.load_manifest().client
    cpu_ratio, tokens_per_s = client.cpu_ratio if client else None, summary["throughput"]["output_tokens_per_s"]
    figures = {
        "cpu_ms_per_1000_events": used.cpu_s * 1e6 / events,
        "cpu_ms_per_1000_events_in_window": cpu_ratio * 1e6 / tokens_per_s if cpu_ratio and tokens_per_s else None,
        "cpu_ms_per_1000_events_without_start": (used.cpu_s - start.cpu_s) * 1e6 / events,
        "start_cpu_s": start.cpu_s,
        "max_rss_mb": used.max_rss_bytes / 1e6,
        "stamp_lag_ms": {
            "p99": percentile(stamp_lags, 99) if stamp_lags else None,
            "second_half_p99": percentile(stamp_lags[len(stamp_lags) // 2 :], 99) if stamp_lags else None,
        },
        "cpu_ratio_in_window": cpu_ratio,
        "valid": float(summary["verdict"]["valid"]),
    }
    return figures, seen


def measured(case: Case, binaries: tuple[Path, Path], cores: Cores, repeats: int) -> dict[str, Any]:
    """Both clients, alternately, as often as asked; the medians and their ratios."""
    server, floor = binaries
    samples: dict[str, list[dict[str, Any]]] = {"floor": [], "loadgen": []}
    for _ in range(repeats):
        for who in samples:
            with tempfile.TemporaryDirectory() as name:
                folder, port = Path(name), free_port()
                log = folder / "log.csv"
                options = {"ttft_ms": case.ttft_ms, "itl_ms": case.gap_ms, "tokens": case.tokens}
                with truth_server(server, cores.server, port, log, **options):
                    if who == "floor":
                        figures, seen = floor_repeat(case, floor, port, cores, folder)
                    else:
                        figures, seen = loadgen_repeat(case, port, cores, folder)
                samples[who].append(judged(case, seen, read_log(log)) | figures)
    ours, theirs = median_of(samples["loadgen"]), median_of(samples["floor"])
    floor_bias = theirs["ttft_bias_ms"]
    limits = {"p50": max(0.5, 1.5 * floor_bias["p50"]), "p99": max(2.0, 1.5 * floor_bias["p99"])}
    return {
        "name": case.name,
        "loadgen": ours,
        "floor": theirs,
        "ttft_bias_limit_ms": limits,
        "ratio": {
            "cpu": ratio(ours["cpu_ms_per_1000_events"], theirs["cpu_ms_per_1000_events"]),
            "cpu_in_window": ratio(ours["cpu_ms_per_1000_events_in_window"], theirs["cpu_ms_per_1000_events"]),
            "cpu_without_start": ratio(ours["cpu_ms_per_1000_events_without_start"], theirs["cpu_ms_per_1000_events"]),
            "ttft_bias_p50": ratio(ours["ttft_bias_ms"]["p50"], theirs["ttft_bias_ms"]["p50"]),
            "ttft_bias_p99": ratio(ours["ttft_bias_ms"]["p99"], theirs["ttft_bias_ms"]["p99"]),
        },
        "repeats": samples,
    }


def show(case: dict[str, Any]) -> None:
    """One case as a table."""
    rows = []
    for name, value in case["loadgen"].items():
        other = case["floor"].get(name)
        for key, item in value.items() if isinstance(value, dict) else [("", value)]:
            beside = other.get(key) if isinstance(other, dict) else other
            rows.append((f"{name} {key}".strip(), item, beside))
    rows += [(f"ratio {name}", value, 1.0) for name, value in case["ratio"].items()]
    print_table(case["name"], ("figure", "loadgen", "floor"), rows)


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=[case.name for case in CASES], action="append")
    options = parser.parse_args()
    raise_file_limit()
    cores, cases = Cores.chosen(), []
    with tempfile.TemporaryDirectory() as folder:
        server, floor = build(options.material, Path(folder), "truth_server", "floor_client")
        for case in CASES:
            if options.only and case.name not in options.only:
                continue
            cases.append(measured(case, (server, floor), cores, options.repeats))
            show(cases[-1])
    shared = cores.server == cores.client
    print(json.dumps({"schema": SCHEMA, "host": host() | {"one_core_for_both": shared}, "cases": cases}, indent=2))


if __name__ == "__main__":
    main()
