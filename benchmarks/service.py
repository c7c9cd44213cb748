"""What reading the service's API does to a run that it measures meanwhile.

    python benchmarks/service.py [--material DIR] [--clients 200] [--every 1.0] [--repeats 3]

A reference server of known emission times has a core to itself, since elsewhere it would have a machine of its own.
`loadgen serve` measures 200 streams against it, alternately with nobody looking and with many API clients, each of
which asks for the list of runs, for the run and for its events, one after the other. Service, measuring process and
clients share the cores that are left, which may be a single one; the clients step back (nice 10), since they too would
have machines of their own. Bias is the client's figure minus the server's log, as in truth.py. On a virtual machine
the server's core is away at times (`server_stolen_ms`); requests that reach it meanwhile are stamped late in its log,
which looks like a bias.

Prints a table on standard error, medians over the repeats, and JSON on standard output.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
from common import (
    DEFAULT_MATERIAL,
    Cores,
    build,
    free_port,
    host,
    median_of,
    print_table,
    raise_file_limit,
    stolen_ms,
    truth_server,
)
from truth import CASES, Seen, judged, read_log

from loadgen.adapters.store.run_folder import RunFolder

SCHEMA = "loadgen.benchmark.service/1"
# Ten rounds of the streams: of 2,000 requests twenty lie beyond p99.
CASE = replace(CASES[0], requests=2_000)
_AT = re.compile(r"the service is at (http://\S+)")


@contextmanager
def service(data: Path) -> Iterator[str]:
    """`loadgen serve` on a free port; its URL."""
    command = (sys.executable, "-m", "loadgen", "serve", "--port", "0", "--data-dir", str(data), "--log-level", "error")
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = _AT.search(process.stderr.readline())
    if found is None:
        sys.exit("the service does not start")
    try:
        yield found[1]
    finally:
        process.terminate()
        process.communicate(timeout=60)


def read_without_end(url: str, run_id: str, clients: int, every_s: float, answers: Any) -> None:
    """As many clients, each with a request under way or a pause behind it, until the process is ended."""
    os.nice(10)
    paths = ("/v1/runs", f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/events?follow=false")

    async def one(client: httpx2.AsyncClient, number: int) -> None:
        await asyncio.sleep(every_s * number / clients)
        for path in cycle(paths):
            due_s = time.monotonic() + every_s
            (await client.get(path)).raise_for_status()
            with answers.get_lock():
                answers.value += 1
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))

    async def all_of_them() -> None:
        limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
        async with httpx2.AsyncClient(base_url=url, timeout=60, trust_env=False, limits=limits) as client:
            await asyncio.gather(*(one(client, number) for number in range(clients)))

    asyncio.run(all_of_them())


def measured(server: Path, core: int, clients: int, every_s: float) -> dict[str, Any]:
    """One run of the service, with so many clients beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        log = folder / "log.csv"
        options = {"ttft_ms": CASE.ttft_ms, "itl_ms": CASE.gap_ms, "tokens": CASE.tokens}
        with truth_server(server, core, port, log, **options), service(folder / "data") as url:
            before_ms = stolen_ms(core)
            seen, answers, took_s = one_run(url, port, folder / "data", clients, every_s)
            away_ms = stolen_ms(core) - before_ms
        return judged(CASE, seen, read_log(log)) | {"answers_per_s": answers / took_s, "server_stolen_ms": away_ms}


def one_run(url: str, port: int, data: Path, clients: int, every_s: float) -> tuple[list[Seen], int, float]:
    """What the run saw, and how many answers the clients had meanwhile."""
    asked = {"concurrency": CASE.concurrency, "num_requests": CASE.requests, "output_tokens": str(CASE.tokens)}
    asked |= {"endpoint": "completions", "model": "truth", "input_tokens": "8", "scrape": False}
    body = {"kind": "run", "target": {"url": f"http://127.0.0.1:{port}"}, "options": asked}
    run_id = httpx2.post(f"{url}/v1/runs", json=body).raise_for_status().json()["id"]
    answers = multiprocessing.Value("q", 0)
    readers = multiprocessing.Process(target=read_without_end, args=(url, run_id, clients, every_s, answers))
    if clients:
        readers.start()
    began_s = time.monotonic()
    try:
        while (run := httpx2.get(f"{url}/v1/runs/{run_id}", timeout=60).json())["ended_at"] is None:
            time.sleep(1.0)
    finally:
        if clients:
            readers.kill()
            readers.join()
    took_s = time.monotonic() - began_s
    if run["state"] != "completed":
        sys.exit(f"the run is {run['state']}: {run['message']}")
    (results,) = (data / "runs" / run_id / "out").iterdir()
    records = sorted(RunFolder.open(results).records(), key=lambda record: record.sent_ns or 0)
    seen = [
        Seen(record.request_id, record.due_ns, record.sent_ns or 0, record.first_ns or 0, record.last_ns or 0)
        for record in records
    ]
    return seen, answers.value, took_s


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--every", type=float, default=1.0, help="seconds from one request of a client to its next")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    raise_file_limit()
    cores = Cores.chosen()
    os.sched_setaffinity(0, cores.apart)  # this process and all that it starts; the server takes its own
    samples: dict[str, list[dict[str, Any]]] = {"alone": [], "read": []}
    with tempfile.TemporaryDirectory() as folder:
        (server,) = build(given.material, Path(folder), "truth_server")
        for _ in range(given.repeats):
            for name, clients in (("alone", 0), ("read", given.clients)):
                samples[name].append(measured(server, cores.server, clients, given.every))
    alone, read = median_of(samples["alone"]), median_of(samples["read"])
    rows = [
        (f"{name} {key}".strip(), item, read[name][key] if isinstance(value, dict) else read[name])
        for name, value in alone.items()
        for key, item in (value.items() if isinstance(value, dict) else [("", value)])
    ]
    print_table(f"{CASE.name}, {given.clients} API clients", ("figure", "alone", "read"), rows)
    told = {"alone": alone, "read": read, "repeats": samples, "clients": given.clients, "every_s": given.every}
    print(json.dumps({"schema": SCHEMA, "host": host(), **told}, indent=2))


if __name__ == "__main__":
    main()
