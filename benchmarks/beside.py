"""What something beside the measurement does to it: one load, with it and without it, by turns.

A reference server of known emission times runs about 200 streams on one core, `loadgen run` on another. Bias is the
client's figure minus the server's log, request by request, of the requests that were sent once all streams were up.
The arms take turns, backwards every other time, so that a slow drift of the machine falls on all of them.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Process
from pathlib import Path
from statistics import median
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
    truth_server,
)
from truth import Case, judged, read_log, seen_of

CASE = Case("200 streams", requests=0, tokens=200, ttft_ms=100, gap_ms=20, concurrency=200, rate_rps=50)
"""Answers of 4.08 s, 50 a second: about 200 streams, for as many requests as the options say."""
FULL_AFTER_NS = 4_080_000_000
Arms = Mapping[str, Sequence[str]]
"""The options of `loadgen run` by the name of the arm; the others are held against the first one."""


def measured(server: Path, cores: Cores, arm: Sequence[str], seconds: float) -> dict[str, Any]:
    """The figures of one run: bias against the log and lateness, ms, and what it cost."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        known = {"ttft_ms": CASE.ttft_ms, "itl_ms": CASE.gap_ms, "tokens": CASE.tokens}
        planned = round((CASE.rate_rps or 0) * seconds)
        with truth_server(server, cores.server, port, folder / "log.csv", **known):
            load = ("--request-rate", CASE.rate_rps or 0, "--output-tokens", CASE.tokens, "--num-requests", planned)
            used, run, summary = loadgen_run(port, cores.client, folder / "runs", *load, *arm)
        records = [record for record in run.records() if record.sent_ns is not None]
        log = read_log(folder / "log.csv")
    full_ns = min(record.sent_ns or 0 for record in records) + FULL_AFTER_NS
    seen = [request for request in seen_of(records) if request.sent_ns >= full_ns]
    if not seen:
        sys.exit("no request was sent once all streams were up; give more --seconds")
    stamp_lags = [record.stamp_lag_ns / 1e6 for record in records if record.stamp_lag_ns is not None]
    wanted = ("ttft_bias_ms", "tpot_bias_ms", "lateness_ms", "server_late_ms")
    told = judged(CASE, seen, log)
    return {name: told[name] for name in wanted} | {
        "stamp_lag_ms": {"p99": percentile(stamp_lags, 99)} if stamp_lags else {},
        "cpu_s": used.cpu_s,
        "cpu_ms_per_1000_events": used.cpu_s * 1e6 / (planned * CASE.tokens),
        "requests": len(seen),
        "readings": summary["server"]["scrapes"],
        "failed": summary["server"]["failed_scrapes"],
    }


@contextmanager
def beside(handler: type[BaseHTTPRequestHandler], core: int) -> Iterator[str]:
    """A server of the handler on a core; its address, until the block ends."""
    port = free_port()
    process = Process(target=_serve, args=(handler, port, core), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.join()


def _serve(handler: type[BaseHTTPRequestHandler], port: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    ThreadingHTTPServer(("127.0.0.1", port), handler).serve_forever()


def options(document: str | None) -> argparse.Namespace:
    """What the command line says; the document is the script's."""
    parser = argparse.ArgumentParser(description=(document or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--repeats", type=int, default=4)
    return parser.parse_args()


def compare(title: str, schema: str, arms: Arms, cores: Cores, given: argparse.Namespace) -> None:
    """Measures the arms by turns, prints a table on standard error and JSON on standard output.

    The table has medians with the least and the largest of the repeats, and what each arm adds to the first one.
    """
    raise_file_limit()
    samples: dict[str, list[dict[str, Any]]] = {name: [] for name in arms}
    with tempfile.TemporaryDirectory() as folder:
        (server,) = build(given.material, Path(folder), "truth_server")
        for repeat in range(given.repeats):
            for name in list(arms)[:: -1 if repeat % 2 else 1]:
                samples[name].append(measured(server, cores, arms[name], given.seconds))
    medians = {name: median_of(found) for name, found in samples.items()}
    alone, *others = map(_figures, medians.values())
    runs = [list(map(_figures, found)) for found in samples.values()]
    rows = []
    for figure, without in alone.items():
        shown = [_spread([run[figure] for run in found]) for found in runs]
        rows.append((figure, *shown, *(f"{other[figure] - without:+.3g}" for other in others)))
    print_table(title, ("figure", *arms, *(f"{name}, added" for name in [*arms][1:])), rows)
    print(json.dumps({"schema": schema, "host": host(), "arms": medians, "repeats": samples}, indent=2))


def _figures(sample: dict[str, Any]) -> dict[str, float]:
    """A run's figures under flat names."""
    flat: dict[str, float] = {}
    for name, value in sample.items():
        flat |= {f"{name} {part}": item for part, item in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})"
