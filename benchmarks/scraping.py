"""What reading a server's metrics page does to the measurement beside it.

    python benchmarks/scraping.py [--material DIR] [--seconds 20] [--repeats 4]

A reference server of known emission times, which has no page, runs about 200 streams on one core; `loadgen run` on
another reads nothing, and the page of a vLLM server (57 kB, recorded) from a second address, every second and as often
as the options allow. What the page costs the server's core is in the server's log, too, and not held against the
client.

Prints a table on standard error, medians with the least and the largest of the repeats and what reading adds to the
median, and JSON on standard output. What reading adds means something where it lies outside the repeats' own spread.
"""

from http.server import BaseHTTPRequestHandler
from typing import Any

from beside import beside, compare, options
from common import ROOT, Cores

PAGE = (ROOT / "tests" / "golden" / "metrics" / "vllm_0.32_ngram.txt").read_bytes()


class _Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *args: Any) -> None:
        """Nothing."""


def main() -> None:
    """Parses, measures, prints."""
    given, cores = options(__doc__), Cores.chosen()
    with beside(_Page, cores.server) as address:
        read = ("--metrics-url", f"{address}/metrics", "--scrape-interval")
        arms = {"not read": ("--no-scrape",), "every 1 s": (*read, "1s"), "every 0.2 s": (*read, "0.2s")}
        compare("Reading a metrics page", "loadgen.benchmark.scraping/2", arms, cores, given)


if __name__ == "__main__":
    main()
