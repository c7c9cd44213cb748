"""How punctual `loadgen sim` is: streams of a fixed step time, the server on one core, a light client on another.

    python benchmarks/simulator.py [--streams 64] [--step-ms 8] [--seconds 30]

Each stream asks again when its answer has ended, so requests keep coming in. Emission error is the server's own figure:
how long after a step's end its writes began. The client's view is the gap between two reads of one stream. Prints a
table on standard error and JSON on standard output.
"""

import argparse
import json
import os
import selectors
import socket
import time
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from common import Cores, host, percentile, print_table

from loadgen.wiring.sim import spawn_simulator

SCHEMA = "loadgen.benchmark.simulator/1"
PROMPT_WORDS = 200


@dataclass(eq=False)
class Stream:
    """One connection with a request under way; `gaps_ns` are those between reads within an answer."""

    connection: socket.socket
    read_ns: int | None = None
    tail: bytes = b""
    gaps_ns: list[int] = field(default_factory=list)
    answers: int = 0

    def ask(self, tokens: int) -> None:
        """Sends a request whose prompt no other has."""
        prompt = f"{id(self)} {self.answers} " + " word" * PROMPT_WORDS
        body = {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True}
        data = json.dumps(body).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(data)
        self.connection.sendall(head + data)
        self.read_ns = None

    def read(self) -> bool:
        """Takes what is there; whether the answer has ended."""
        data = self.connection.recv(65536)
        now_ns = time.monotonic_ns()
        if b"data: {" not in data and self.read_ns is None:
            return False
        if self.read_ns is not None:
            self.gaps_ns.append(now_ns - self.read_ns)
        self.read_ns = now_ns
        self.tail = (self.tail + data)[-5:]
        return self.tail == b"0\r\n\r\n"


def drive(port: int, streams: int, tokens: int, seconds: float) -> list[Stream]:
    """Keeps the streams going for that long. Lengths differ, so that they do not all end at once."""
    selector = selectors.DefaultSelector()
    opened = [Stream(socket.create_connection(("127.0.0.1", port))) for _ in range(streams)]
    for index, stream in enumerate(opened):
        selector.register(stream.connection, selectors.EVENT_READ, stream)
        stream.ask(tokens // 2 + tokens * index // streams)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for key, _ in selector.select(1):
            stream = key.data
            if stream.read():
                stream.answers += 1
                stream.ask(tokens)
    for stream in opened:
        stream.connection.close()
    return opened


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def lateness(port: int) -> dict[str, Any]:
    """What the server says of itself."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/sim/lateness")
    figures: dict[str, Any] = json.load(connection.getresponse())
    connection.close()
    return figures


def main() -> None:
    """Parses, measures, prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--step-ms", type=float, default=8.0)
    parser.add_argument("--tokens", type=int, default=400, help="output tokens of an answer")
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    cores = Cores.chosen()
    machine = host() | {"one_core_for_both": cores.server == cores.client}
    arguments = ("--step-time", f"{options.step_ms:g}ms", "--kv-blocks", "100000")
    with spawn_simulator(*arguments, cpus={cores.server}) as server:
        os.sched_setaffinity(0, {cores.client})
        before_s, started = cpu_s(server.pid), time.monotonic()
        streams = drive(server.port, options.streams, options.tokens, options.seconds)
        wall_s = time.monotonic() - started
        used_s, late = cpu_s(server.pid) - before_s, lateness(server.port)
    gaps_ms = [gap / 1e6 for stream in streams for gap in stream.gaps_ns]
    figures = {
        "streams": options.streams,
        "step_ms": options.step_ms,
        "events": late["emissions"],
        "answers": sum(stream.answers for stream in streams),
        "emission_error_ms": {name: late[f"{name}_s"] * 1e3 for name in ("p50", "p99", "max")},
        "late_ratio": late["late"] / late["emissions"],
        "missed_steps": late["missed"],
        "client_gap_ms": {f"p{p:g}": percentile(gaps_ms, p) for p in (1, 50, 99, 99.9)},
        "server_cpu_ratio": used_s / wall_s,
    }
    rows: list[tuple[str, Any]] = []
    for name, value in figures.items():
        rows += [(f"{name} {key}", item) for key, item in value.items()] if isinstance(value, dict) else [(name, value)]
    print_table("simulator", ("figure", "value"), rows)
    print(json.dumps({"schema": SCHEMA, "host": machine} | figures, indent=2))


if __name__ == "__main__":
    main()
