"""What metrics cost the measurement: CPU for 1,000 events and bias, with a page, with pushes, and without.

    python benchmarks/metrics.py [--material DIR] [--seconds 20] [--repeats 4]

A reference server of known emission times runs about 200 streams on one core, `loadgen run` on another: without
metrics, with a page that is read every second as Prometheus asks for it (more often than is usual), and with a push by
OTLP every second. Whoever reads and whoever takes pushes runs on the server's core.

Prints a table on standard error, medians with the least and the largest of the repeats and what metrics add to the
median, and JSON on standard output. What they add means something where it lies outside the repeats' own spread.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from multiprocessing import Process
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from beside import beside, compare, options
from common import Cores, free_port

_ACCEPT = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,"
    "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5"
)
_EVERY_S = 1.0


class _Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Nothing."""


def _read(url: str, core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        try:
            with urlopen(Request(url, headers={"Accept": _ACCEPT}), timeout=10) as answer:
                answer.read()
        except (URLError, ConnectionError):
            pass  # between two runs there is no page
        time.sleep(_EVERY_S)


@contextmanager
def _reader(url: str, core: int) -> Iterator[None]:
    process = Process(target=_read, args=(url, core), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def main() -> None:
    """Parses, measures, prints."""
    given, cores, port = options(__doc__), Cores.chosen(), free_port()
    os.environ["OTEL_METRIC_EXPORT_INTERVAL"] = str(round(_EVERY_S * 1000))
    with beside(_Collector, cores.server) as collector, _reader(f"http://127.0.0.1:{port}/metrics", cores.server):
        arms = {
            "without": ("--no-scrape",),
            "a page, read every 1 s": ("--no-scrape", "--prometheus-port", str(port)),
            "pushed every 1 s": ("--no-scrape", "--otlp-endpoint", collector),
        }
        compare("Metrics", "loadgen.benchmark.metrics/1", arms, cores, given)


if __name__ == "__main__":
    main()
