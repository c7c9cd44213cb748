"""Peak memory of `loadgen run` over a given number of token events.

    python benchmarks/memory.py [--material DIR] [--events 10000000]

The reference server paces 800 streams at 50 tokens/s, so ten million events take a little over four minutes. Prints a
table on standard error and JSON on standard output.
"""

import argparse
import json
import tempfile
from pathlib import Path

from common import (
    DEFAULT_MATERIAL,
    Cores,
    build,
    free_port,
    host,
    loadgen_run,
    print_table,
    raise_file_limit,
    truth_server,
)

SCHEMA = "loadgen.benchmark.memory/1"
STREAMS, TOKENS = 800, 500


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--material", type=Path, default=DEFAULT_MATERIAL, help="folder that holds truth-server/")
    parser.add_argument("--events", type=int, default=10_000_000)
    options = parser.parse_args()
    raise_file_limit()
    requests = max(STREAMS, options.events // TOKENS)
    cores, port = Cores.chosen(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (server,) = build(options.material, folder, "truth_server")
        with truth_server(server, cores.server, port, folder / "log.csv", ttft_ms=100, itl_ms=20):
            load = ("--concurrency", STREAMS, "--num-requests", requests, "--output-tokens", TOKENS)
            used, run, summary = loadgen_run(port, cores.client, folder / "runs", *load)
        stored = sum(path.stat().st_size for path in run.path.iterdir())
    events = requests * TOKENS
    figures = {
        "events": events,
        "completed": summary["requests"]["completed"],
        "max_rss_mb": used.max_rss_bytes / 1e6,
        "stored_bytes_per_event": stored / events,
        "wall_s": used.wall_s,
        "cpu_ms_per_1000_events": used.cpu_s * 1e6 / events,
    }
    print_table("memory", ("figure", "value"), list(figures.items()))
    print(json.dumps({"schema": SCHEMA, "host": host()} | figures, indent=2))


if __name__ == "__main__":
    main()
