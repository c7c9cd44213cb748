"""Time and memory of a summary over a million token events, from records in memory and from a stored run.

    python benchmarks/summary.py [--requests 5000] [--tokens 200] [--repeats 3]

Prints a table on standard error and JSON on standard output.
"""

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from common import host, print_table

from loadgen.adapters.store.records import RecordWriter
from loadgen.adapters.store.run_folder import RECORDS, RunFolder
from loadgen.core.analysis.analyse import analyse
from loadgen.core.record import Outcome, RequestRecord, TokenSource
from loadgen.core.request import Phase
from loadgen.core.run import Load, LoadMode, RunManifest, Target

SCHEMA = "loadgen.benchmark.summary/1"
CONCURRENCY, GAP_NS, TTFT_NS = 100, 20_000_000, 100_000_000


def made_records(requests: int, tokens: int) -> list[RequestRecord]:
    """A closed loop with a little noise, the same each time."""
    noise = random.Random(1)
    free_ns = [0] * CONCURRENCY
    records = []
    for seq in range(requests):
        slot = seq % CONCURRENCY
        sent = free_ns[slot]
        events = tuple(sent + TTFT_NS + k * GAP_NS + noise.randrange(2_000_000) for k in range(tokens))
        free_ns[slot] = events[-1] + 100_000
        records.append(
            RequestRecord(
                seq=seq,
                request_id=f"r-{seq}",
                phase=Phase.MEASURE,
                sent_ns=sent,
                headers_ns=sent + 1_000_000,
                first_ns=events[0],
                first_output_ns=events[0],
                last_ns=events[-1],
                closed_ns=events[-1] + 50_000,
                event_ns=events,
                input_tokens=8,
                output_tokens=tokens,
                output_tokens_from=TokenSource.SERVER,
                outcome=Outcome.COMPLETED,
                finish_reason="length",
                http_status=200,
                streamed=True,
            )
        )
    return records


def best_s(work: Callable[[], object], repeats: int) -> float:
    """The shortest of the repeats."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    records = made_records(options.requests, options.tokens)
    manifest = RunManifest(
        run_id="made",
        started_at="2026-01-01T00:00:00Z",
        origin_unix_ns=0,
        target=Target(url="http://127.0.0.1", endpoint="completions", model="truth"),
        load=Load(mode=LoadMode.CONCURRENCY, concurrency=CONCURRENCY, num_requests=options.requests),
        planned=options.requests,
    )

    def from_memory() -> Iterable[RequestRecord]:
        return iter(records)

    figures: dict[str, float] = {"events": options.requests * options.tokens}
    figures["from_memory_s"] = best_s(lambda: analyse(from_memory, manifest), options.repeats)
    with tempfile.TemporaryDirectory() as name:
        folder = RunFolder.create(Path(name), "made")
        writer = RecordWriter(folder.path / RECORDS, limit_bytes=2**32)  # nothing here waits for the disk
        for record in records:
            writer.put(record)
        writer.close()
        figures["stored_bytes_per_event"] = (folder.path / RECORDS).stat().st_size / figures["events"]
        figures["from_folder_s"] = best_s(lambda: analyse(folder.records, manifest), options.repeats)
    figures["max_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print_table("summary", ("figure", "value"), list(figures.items()))
    print(json.dumps({"schema": SCHEMA, "host": host()} | figures, indent=2))


if __name__ == "__main__":
    main()
