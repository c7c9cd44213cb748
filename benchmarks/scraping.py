"""What reading a server's metrics page does to the measurement beside it.

    python benchmarks/scraping.py [--material DIR] [--seconds 15] [--repeats 2]

A reference server of known emission times, which has no page, runs about 200 streams on one core; `loadgen run` on
another reads, alternately, nothing and the page of a vLLM server (57 kB, recorded) from a second address, every second
and as often as the options allow. Prints a table on standard error and JSON on standard output.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
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

SCHEMA = "loadgen.benchmark.scraping/1"
PAGE = (ROOT / "tests" / "golden" / "metrics" / "vllm_0.32_ngram.txt").read_bytes()
RATE_RPS, TOKENS, TTFT_MS, GAP_MS = 50, 200, 100.0, 20.0
"""Answers of four seconds, 50 a second: 200 streams."""
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
    """The client's figures of one run, in milliseconds."""
    reading: Sequence[str] = ["--no-scrape"]
    if interval is not None:
        reading = ["--metrics-url", page, "--scrape-interval", interval]
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        with truth_server(server, cores.server, port, folder / "log", ttft_ms=TTFT_MS, itl_ms=GAP_MS, tokens=TOKENS):
            load = ("--request-rate", RATE_RPS, "--num-requests", round(RATE_RPS * seconds), "--output-tokens", TOKENS)
            used, run, summary = loadgen_run(port, cores.client, folder / "runs", *load, *reading)
        stamp_lags = [(record.stamp_lag_ns or 0) / 1e6 for record in run.records()]
    latency = summary["latency"]
    return {
        "lag_ms": {name: latency["schedule_lag_s"][name] * 1e3 for name in ("p50", "p99")},
        "ttft_ms": {name: latency["ttft_s"][name] * 1e3 for name in ("p50", "p99")},
        "icl_ms": {name: latency["icl_s"][name] * 1e3 for name in ("p50", "p99")},
        "stamp_lag_ms": {"p99": percentile(stamp_lags, 99)},
        "cpu_s": used.cpu_s,
        "readings": summary["server"]["scrapes"],
        "failed": summary["server"]["failed_scrapes"],
    }


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    raise_file_limit()
    cores, samples = Cores.chosen(), {name: [] for name in ARMS}
    with tempfile.TemporaryDirectory() as folder, page_server(cores.server) as page:
        (server,) = build(options.material, Path(folder), "truth_server")
        for _ in range(options.repeats):
            for name, interval in ARMS.items():
                samples[name].append(measured(server, cores, page, interval, options.seconds))
    arms = {name: median_of(found) for name, found in samples.items()}
    rows = [
        (f"{figure} {part}".strip(), *(arm[figure][part] if part else arm[figure] for arm in arms.values()))
        for figure, value in arms["not read"].items()
        for part in (value if isinstance(value, dict) else [""])
    ]
    print_table("Reading a metrics page", ("figure", *arms), rows)
    print(json.dumps({"schema": SCHEMA, "host": host(), "arms": arms, "repeats": samples}, indent=2))


if __name__ == "__main__":
    main()
