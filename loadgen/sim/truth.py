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
import gc
import json
import math
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httptools
import msgspec

from loadgen import __version__
from loadgen.adapters.clock import MonotonicClock
from loadgen.core.errors import ConfigError, InternalError
from loadgen.sim.script import Asked, Fault, Script, read_request, stream, unary

LOG_SCHEMA = "loadgen.truth/1"
_KEPT_ENTRIES = 100_000
_START_TIMEOUT_S = 30.0
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


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
    """The server's state: default script, clock, log."""

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


class _Connection(asyncio.Protocol):
    """One client connection: requests are answered one after the other."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._request_id, self._body = b"", "", bytearray()
        self._read_ns = 0
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answering:
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        self._read_ns = time.monotonic_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._url, self._request_id = b"", ""
        self._body.clear()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-request-id":
            self._request_id = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path = self._url.decode("latin-1")
        if self._parser.get_method() == b"POST" and path in ("/v1/chat/completions", "/v1/completions"):
            self._truth.requests += 1
            entry = TruthEntry(request_id=self._request_id or str(self._truth.requests), recv_ns=self._read_ns)
            keep_alive = self._parser.should_keep_alive()
            answer = self._answer(entry, bytes(self._body), path == "/v1/chat/completions", keep_alive)
            self._answering = asyncio.get_running_loop().create_task(answer)
        else:
            self._respond(*self._truth.page(path))

    async def _answer(self, entry: TruthEntry, body: bytes, chat: bool, keep_alive: bool) -> None:
        truth = self._truth
        truth.in_flight += 1
        try:
            try:
                asked, script = read_request(
                    body, chat=chat, model=truth.model, request_id=entry.request_id, script=truth.script
                )
            except ConfigError as fault:
                entry.status, entry.http_status = "bad_request", 400
                self._respond(*_json(400, {"error": {"message": str(fault), "type": "BadRequest", "code": 400}}))
                return
            await truth.clock.sleep_until(entry.recv_ns + round(script.headers_ms * 1e6))
            entry.http_status = script.status
            await self._follow(script, asked, entry)
            entry.status = script.fault or ("ok" if script.status == 200 else "error_status")
        finally:
            truth.in_flight -= 1
            entry.done_ns = time.monotonic_ns()
            truth.log(entry)
        if not keep_alive:
            self._transport.close()

    async def _follow(self, script: Script, asked: Asked, entry: TruthEntry) -> None:
        if script.status != 200:
            error = {"message": f"scripted {script.status}", "type": "Scripted", "code": script.status}
            retry = {} if script.retry_after_s is None else {"Retry-After": f"{script.retry_after_s:g}"}
            self._respond(*_json(script.status, {"error": error}), retry)
        elif script.fault is Fault.WRONG_TYPE:
            self._respond(200, "text/html; charset=utf-8", b"<!doctype html><title>Welcome</title><p>It works.")
        elif script.fault is Fault.NOT_STREAMED or not asked.stream:
            offset_ns, body = unary(script, asked)
            await self._truth.clock.sleep_until(entry.recv_ns + offset_ns)
            self._emitted(entry, offset_ns, 1, json.loads(body)["usage"]["completion_tokens"])
            self._respond(200, "application/json", body)
        else:
            self._transport.write(_STREAM_HEAD)
            await self._stream(script, asked, entry)

    async def _stream(self, script: Script, asked: Asked, entry: TruthEntry) -> None:
        last_ns = entry.recv_ns
        for write in stream(script, asked):
            last_ns = entry.recv_ns + write.offset_ns
            framed = b"%x\r\n%b\r\n" % (len(write.data), write.data)
            await self._truth.clock.sleep_until(last_ns)
            if write.events:
                self._emitted(entry, write.offset_ns, write.events, write.tokens)
            self._transport.write(framed)
            await asyncio.sleep(0)  # every stream that is due now writes before any prepares its next event
        match script.fault:
            case Fault.TRUNCATED:
                self._transport.close()
            case Fault.RESET:
                await self._truth.clock.sleep_until(last_ns + round(script.gap_ms * 1e6))
                linger = struct.pack("ii", 1, 0)
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            case Fault.STALL:
                entry.status = Fault.STALL
                await asyncio.Event().wait()
            case _:
                self._transport.write(b"0\r\n\r\n")

    @staticmethod
    def _emitted(entry: TruthEntry, offset_ns: int, events: int, tokens: int) -> None:
        now = time.monotonic_ns()
        entry.first_ns = now if entry.first_ns is None else entry.first_ns
        entry.last_ns = now
        entry.events += events
        entry.tokens += tokens
        entry.event_ns.append(now)
        entry.late_ns.append(now - entry.recv_ns - offset_ns)

    def _respond(self, status: int, content_type: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        lines = [
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        self._transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)


def _json(status: int, value: Any) -> tuple[int, str, bytes]:
    return status, "application/json", msgspec.json.encode(value)


async def serve(truth: Truth, host: str, port: int, *, until_stdin_closes: bool) -> None:
    """Serves until SIGTERM, SIGINT or, if asked, the end of standard input; prints where once it listens."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_stdin_closes:
        loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1024) else stop.set())
    server = await loop.create_server(lambda: _Connection(truth), host, port, backlog=4096)
    bound = server.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)  # a full collection among the writes would be lateness of our own
    print(json.dumps({"url": f"http://{shown}:{bound}", "port": bound, "model": truth.model}), flush=True)  # noqa: T201
    await stop.wait()
    server.close()


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


@dataclass(frozen=True, slots=True)
class TruthServer:
    """A running known-truth server. `url` is its root, without `/v1`."""

    url: str
    port: int
    model: str
    pid: int

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
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    with process:
        try:
            if cpus and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(process.pid, cpus)
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], _START_TIMEOUT_S)
            line = process.stdout.readline() if ready else b""
            if not line:
                raise InternalError(f"the known-truth server did not start (exit code {process.poll()})")
            said = json.loads(line)
            yield TruthServer(said["url"], said["port"], said["model"], process.pid)
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()


if __name__ == "__main__":
    main()
