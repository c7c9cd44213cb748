"""What reading a server's metrics page does to the measurement beside it.

    python benchmarks/scraping.py [--material DIR] [--seconds 20] [--repeats 4]

A reference server of known emission times, which has no page, runs about 200 streams on one core; `loadgen run` on
another reads nothing, and the page of a vLLM server (57 kB, recorded) from a second address, every second and as often
as the options allow. Bias is the client's figure minus the server's log, request by request, of the requests that were
sent once all streams were up: what the page costs the server's core is in the log, too, and not held against the
client. The arms take turns, backwards every other time, so that a slow drift of the machine falls on all of them.

Prints a table on standard error, medians with the least and the largest of the repeats and what reading adds to the
median, and JSON on standard output. What reading adds means something where it lies outside the repeats' own spread.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from common import (
    DEFAULT_MATERIAL,
    ROOT,
    Cores,
    build,
    free_port,
    host,
    loadgen_run,
    median_of,
    percentile,
    print_table,
    raise_file_limit,
    truth_server,
)
from truth import Case, Seen, judged, read_log

SCHEMA = "loadgen.benchmark.scraping/2"
PAGE = (ROOT / "tests" / "golden" / "metrics" / "vllm_0.32_ngram.txt").read_bytes()
CASE = Case("200 streams", requests=0, tokens=200, ttft_ms=100, gap_ms=20, concurrency=200, rate_rps=50)
"""Answers of 4.08 s, 50 a second: about 200 streams, for as many requests as the options say."""
FULL_AFTER_NS = 4_080_000_000
ARMS = {"not read": None, "every 1 s": "1s", "every 0.2 s": "0.2s"}


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *args: Any) -> None:
        """Nothing."""


def _serve(port: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    ThreadingHTTPServer(("127.0.0.1", port), _Page).serve_forever()


@contextmanager
def page_server(core: int) -> Iterator[str]:
    """The page's address, until the block ends."""
    port = free_port()
    process = multiprocessing.Process(target=_serve, args=(port, core), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        process.terminate()
        process.join()


def measured(server: Path, cores: Cores, page: str, interval: str | None, seconds: float) -> dict[str, Any]:
    """The figures of one run: bias against the log and lateness, ms, and what it cost."""
    reading: Sequence[str] = ["--no-scrape"]
    if interval is not None:
        reading = ["--metrics-url", page, "--scrape-interval", interval]
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        known = {"ttft_ms": CASE.ttft_ms, "itl_ms": CASE.gap_ms, "tokens": CASE.tokens}
        with truth_server(server, cores.server, port, folder / "log.csv", **known):
            load = ("--request-rate", CASE.rate_rps or 0, "--output-tokens", CASE.tokens)
            requests = ("--num-requests", round((CASE.rate_rps or 0) * seconds))
            used, run, summary = loadgen_run(port, cores.client, folder / "runs", *load, *requests, *reading)
        records = [record for record in run.records() if record.sent_ns is not None]
        log = read_log(folder / "log.csv")
    full_ns = min(record.sent_ns or 0 for record in records) + FULL_AFTER_NS
    seen = [
        Seen(record.request_id, record.due_ns, record.sent_ns, record.first_ns, record.last_ns)
        for record in records
        if record.sent_ns is not None and record.first_ns is not None and record.last_ns is not None
        if record.sent_ns >= full_ns
    ]
    if not seen:
        sys.exit("no request was sent once all streams were up; give more --seconds")
    stamp_lags = [record.stamp_lag_ns / 1e6 for record in records if record.stamp_lag_ns is not None]
    wanted = ("ttft_bias_ms", "tpot_bias_ms", "lateness_ms", "server_late_ms")
    told = judged(CASE, seen, log)
    return {name: told[name] for name in wanted} | {
        "stamp_lag_ms": {"p99": percentile(stamp_lags, 99)} if stamp_lags else {},
        "cpu_s": used.cpu_s,
        "requests": len(seen),
        "readings": summary["server"]["scrapes"],
        "failed": summary["server"]["failed_scrapes"],
    }


def figures(sample: dict[str, Any]) -> dict[str, float]:
    """A run's figures under flat names."""
    flat: dict[str, float] = {}
    for name, value in sample.items():
        flat |= {f"{name} {part}": item for part, item in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=4)
    options = parser.parse_args()
    raise_file_limit()
    cores, samples = Cores.chosen(), {name: [] for name in ARMS}
    with tempfile.TemporaryDirectory() as folder, page_server(cores.server) as page:
        (server,) = build(options.material, Path(folder), "truth_server")
        for repeat in range(options.repeats):
            for name in list(ARMS)[:: -1 if repeat % 2 else 1]:
                samples[name].append(measured(server, cores, page, ARMS[name], options.seconds))
    arms = {name: median_of(found) for name, found in samples.items()}
    medians, runs = map(figures, arms.values()), {name: list(map(figures, found)) for name, found in samples.items()}
    alone, *read = medians
    rows = []
    for figure, without in alone.items():
        shown = [_spread([run[figure] for run in found]) for found in runs.values()]
        rows.append((figure, *shown, *(f"{arm[figure] - without:+.3g}" for arm in read)))
    print_table("Reading a metrics page", ("figure", *ARMS, *(f"{name}, added" for name in [*ARMS][1:])), rows)
    print(json.dumps({"schema": SCHEMA, "host": host(), "arms": arms, "repeats": samples}, indent=2))


if __name__ == "__main__":
    main()
