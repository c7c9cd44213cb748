"""The known-truth server: an OpenAI-compatible server whose every emission time is planned, kept and logged.

It measures a client, not a model: responses follow a `Script` to the millisecond, and what was really done, late or
not, stands in the log. It imitates no engine. Instants in the log are CLOCK_MONOTONIC nanoseconds, which every process
of the machine reads alike, so they compare directly with a client's. One process, one thread; precise at some thousand
events a second.

`python -m loadgen.sim.truth --port 0` prints one line of JSON with its URL when it is ready. A request may change the
script for itself with a `truth` object in its body, such as `{"truth": {"ttft_ms": 5, "fault": "reset"}}`.
"""

import argparse
import asyncio
import json
import math
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import msgspec

from loadgen import __version__
from loadgen.adapters.clock import MonotonicClock
from loadgen.core.errors import ConfigError
from loadgen.sim.child import ChildServer, child_server
from loadgen.sim.http import LAST_CHUNK, Connection, Exchange, chunk, listen
from loadgen.sim.script import Asked, Fault, Script, read_request, stream, unary

LOG_SCHEMA = "loadgen.truth/1"
_KEPT_ENTRIES = 100_000


@dataclass(slots=True, kw_only=True)
class TruthEntry:
    """What the server did with one request. Instants: CLOCK_MONOTONIC ns.

    `recv_ns` the whole request was read, `first_ns` and `last_ns` just before the write that completed the first and
    the last content event, `event_ns` the same for each write with content, `late_ns` how long after its planned
    instant each of those was. `status` is `ok`, the script's fault, or `gone` when the client left early.
    """

    request_id: str
    status: str = "gone"
    http_status: int | None = None
    recv_ns: int
    first_ns: int | None = None
    last_ns: int | None = None
    done_ns: int | None = None
    events: int = 0
    tokens: int = 0
    event_ns: list[int] = field(default_factory=list)
    late_ns: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """How late the server was over all logged content writes, seconds. None without any."""

    n: int
    p50_s: float | None
    p99_s: float | None
    max_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthLog:
    """The log as `GET /truth/log` gives it."""

    schema: str = LOG_SCHEMA
    lateness: Lateness
    entries: list[TruthEntry]


def lateness_of(entries: list[TruthEntry]) -> Lateness:
    """Pools the lateness of all content writes; percentiles are nearest-rank."""
    late = sorted(ns for entry in entries for ns in entry.late_ns)
    if not late:
        return Lateness(n=0, p50_s=None, p99_s=None, max_s=None)

    def at(share: float) -> float:
        return late[math.ceil(share * len(late)) - 1] / 1e9

    return Lateness(n=len(late), p50_s=at(0.5), p99_s=at(0.99), max_s=late[-1] / 1e9)


class Truth:
    """The server: default script, clock, log, and answers to requests."""

    def __init__(self, script: Script, model: str, log_file: Path | None = None) -> None:
        self.script, self.model = script, model
        self.clock = MonotonicClock(origin_monotonic_ns=0, origin_unix_ns=time.time_ns() - time.monotonic_ns())
        self.entries: deque[TruthEntry] = deque(maxlen=_KEPT_ENTRIES)
        self._log_file = log_file.open("wb", buffering=0) if log_file else None
        self.in_flight = 0
        self.requests = 0

    def log(self, entry: TruthEntry) -> None:
        """Keeps what was done with a request."""
        self.entries.append(entry)
        if self._log_file:
            self._log_file.write(msgspec.json.encode(entry) + b"\n")

    def page(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and body of a GET."""
        match path.partition("?")[0]:
            case "/v1/models":
                model = {"id": self.model, "object": "model", "created": 1, "owned_by": "loadgen"}
                return _json(200, {"object": "list", "data": [model | {"max_model_len": 131_072}]})
            case "/version":
                return _json(200, {"version": __version__, "engine": "loadgen-truth"})
            case "/health" | "/ping":
                return 200, "text/plain", b"ok"
            case "/metrics":
                text = (
                    f"# TYPE truth_requests_total counter\ntruth_requests_total {self.requests}\n"
                    f"# TYPE truth_requests_running gauge\ntruth_requests_running {self.in_flight}\n"
                )
                return 200, "text/plain; version=0.0.4", text.encode()
            case "/truth/log":
                entries = list(self.entries)
                return _json(200, TruthLog(lateness=lateness_of(entries), entries=entries))
            case _:
                return _json(404, {"error": {"message": f"no such route: {path}", "type": "NotFound", "code": 404}})

    def answer(self, exchange: Exchange) -> None:
        """Begins to answer one."""
        if exchange.method == "POST" and exchange.path in ("/v1/chat/completions", "/v1/completions"):
            self.requests += 1
            request_id = exchange.headers.get("x-request-id") or str(self.requests)
            entry = TruthEntry(request_id=request_id, recv_ns=exchange.received_ns)
            task = asyncio.get_running_loop().create_task(self._answer(entry, exchange))
            exchange.on_gone = task.cancel
        else:
            exchange.respond(*self.page(exchange.path))

    async def _answer(self, entry: TruthEntry, exchange: Exchange) -> None:
        chat = exchange.path == "/v1/chat/completions"
        self.in_flight += 1
        try:
            try:
                asked, script = read_request(
                    exchange.body, chat=chat, model=self.model, request_id=entry.request_id, script=self.script
                )
            except ConfigError as fault:
                entry.status, entry.http_status = "bad_request", 400
                exchange.respond(*_json(400, {"error": {"message": str(fault), "type": "BadRequest", "code": 400}}))
                return
            await self.clock.sleep_until(entry.recv_ns + round(script.headers_ms * 1e6))
            entry.http_status = script.status
            await self._follow(script, asked, entry, exchange)
            entry.status = script.fault or ("ok" if script.status == 200 else "error_status")
        finally:
            self.in_flight -= 1
            entry.done_ns = time.monotonic_ns()
            self.log(entry)

    async def _follow(self, script: Script, asked: Asked, entry: TruthEntry, exchange: Exchange) -> None:
        if script.status != 200:
            error = {"message": f"scripted {script.status}", "type": "Scripted", "code": script.status}
            retry = {} if script.retry_after_s is None else {"Retry-After": f"{script.retry_after_s:g}"}
            exchange.respond(*_json(script.status, {"error": error}), retry)
        elif script.fault is Fault.WRONG_TYPE:
            exchange.respond(200, "text/html; charset=utf-8", b"<!doctype html><title>Welcome</title><p>It works.")
        elif script.fault is Fault.NOT_STREAMED or not asked.stream:
            offset_ns, body = unary(script, asked)
            await self.clock.sleep_until(entry.recv_ns + offset_ns)
            self._emitted(entry, offset_ns, 1, json.loads(body)["usage"]["completion_tokens"])
            exchange.respond(200, "application/json", body)
        else:
            exchange.begin("text/event-stream; charset=utf-8")
            await self._stream(script, asked, entry, exchange)

    async def _stream(self, script: Script, asked: Asked, entry: TruthEntry, exchange: Exchange) -> None:
        last_ns = entry.recv_ns
        for write in stream(script, asked):
            last_ns = entry.recv_ns + write.offset_ns
            framed = chunk(write.data)
            await self.clock.sleep_until(last_ns)
            if write.events:
                self._emitted(entry, write.offset_ns, write.events, write.tokens)
            exchange.send(framed)
            await asyncio.sleep(0)  # every stream that is due now writes before any prepares its next event
        match script.fault:
            case Fault.TRUNCATED:
                exchange.cut()
            case Fault.RESET:
                await self.clock.sleep_until(last_ns + round(script.gap_ms * 1e6))
                exchange.reset()
            case Fault.STALL:
                entry.status = Fault.STALL
                await asyncio.Event().wait()
            case _:
                exchange.send(LAST_CHUNK)
                exchange.end()

    @staticmethod
    def _emitted(entry: TruthEntry, offset_ns: int, events: int, tokens: int) -> None:
        now = time.monotonic_ns()
        entry.first_ns = now if entry.first_ns is None else entry.first_ns
        entry.last_ns = now
        entry.events += events
        entry.tokens += tokens
        entry.event_ns.append(now)
        entry.late_ns.append(now - entry.recv_ns - offset_ns)


def _json(status: int, value: Any) -> tuple[int, str, bytes]:
    return status, "application/json", msgspec.json.encode(value)


async def serve(truth: Truth, host: str, port: int, *, until_stdin_closes: bool) -> None:
    """Serves until it is told to stop, as `listen` has it; prints where once it listens."""

    def connected() -> Connection:
        return Connection(time.monotonic_ns, truth.answer)

    def listening(url: str, port: int) -> None:
        print(json.dumps({"url": url, "port": port, "model": truth.model}), flush=True)  # noqa: T201

    await listen(connected, host, port, listening=listening, until_stdin_closes=until_stdin_closes)


def main(arguments: list[str] | None = None) -> None:
    """`python -m loadgen.sim.truth`."""
    parser = argparse.ArgumentParser(prog="python -m loadgen.sim.truth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--model", default="truth", help="the name of the only model")
    parser.add_argument("--script", type=json.loads, default={}, help="the default script as a JSON object")
    parser.add_argument("--log", type=Path, help="write one line of JSON a request to this file")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when the parent process does")
    options = parser.parse_args(arguments)
    try:
        truth = Truth(Script().changed_by(options.script), options.model, options.log)
    except (ConfigError, OSError) as fault:
        parser.error(str(fault))
    asyncio.run(serve(truth, options.host, options.port, until_stdin_closes=options.until_stdin_closes))


class TruthServer(ChildServer):
    """A running known-truth server."""

    def log(self) -> TruthLog:
        """What it has done so far. Requests still under way are not in it."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/truth/log")
            return msgspec.json.decode(connection.getresponse().read(), type=TruthLog)
        finally:
            connection.close()


@contextmanager
def spawn_truth_server(script: Script | None = None, *, cpus: set[int] | None = None) -> Iterator[TruthServer]:
    """Runs the server as a child process, on the given cores where the system can pin, and ends it on the way out.

    The child also ends when this process dies. Raises InternalError when it does not come up.
    """
    command = [sys.executable, "-m", "loadgen.sim.truth", "--until-stdin-closes"]
    command += ["--script", msgspec.json.encode(asdict(script or Script())).decode()]
    with child_server(command, cpus=cpus) as child:
        yield TruthServer(**asdict(child))


if __name__ == "__main__":
    main()
