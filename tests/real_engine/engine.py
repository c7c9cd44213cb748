"""A real vLLM server for tests, its own counters, and the commands that are run against it."""

import ctypes
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
import zstandard

from tests.needs import material, real_engine

REPOSITORY = Path(__file__).parents[2]
CONTEXT_TOKENS = 2_048
"""The model's context."""
CACHE_BLOCK_TOKENS = 128
"""The server's prefix cache works in blocks of this size on a CPU."""
DRAFT_TOKENS = 4
"""Tokens an n-gram draft has."""

START_S, STOP_S, SETTLE_S, COMMAND_S = 600, 30, 120, 600
_SAMPLE = re.compile(r"vllm:(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_POSITION = re.compile(r'position="(\d+)"')
_PR_SET_PDEATHSIG = 1


class Counters(dict[str, float]):
    """Sums over labels of the server's samples by name without prefix; `accepted_at` by draft position."""

    accepted_at: tuple[float, ...] = ()

    @classmethod
    def parsed(cls, page: str) -> "Counters":
        counters, positions = cls(), dict[int, float]()
        for found in map(_SAMPLE.fullmatch, page.splitlines()):
            if found is None or found["name"].endswith("_created"):
                continue
            value = float(found["value"])
            counters[found["name"]] = counters.get(found["name"], 0.0) + value
            if found["name"] == "spec_decode_num_accepted_tokens_per_pos_total":
                place = _POSITION.search(found["labels"])
                assert place is not None
                positions[int(place[1])] = value
        counters.accepted_at = tuple(positions[place] for place in sorted(positions))
        return counters

    def since(self, before: "Counters") -> "Counters":
        """What was added since."""
        added = Counters({name: value - before.get(name, 0.0) for name, value in self.items()})
        added.accepted_at = tuple(
            now - (before.accepted_at[place] if place < len(before.accepted_at) else 0.0)
            for place, now in enumerate(self.accepted_at)
        )
        return added

    def mean(self, histogram: str) -> float:
        """Mean of a histogram's observations."""
        return self[f"{histogram}_sum"] / self[f"{histogram}_count"]


class Server:
    """A running server. `url` is its root."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.process, self.log = process, log
        self.url = f"http://127.0.0.1:{port}"

    def page(self, path: str, body: dict[str, Any] | None = None, *, timeout: float = 60) -> bytes:
        """GET, or POST of a JSON body."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, headers={"Content-Type": "application/json"})
        with urlopen(request, timeout=timeout) as response:
            return bytes(response.read())

    def counters(self) -> Counters:
        """The counters now."""
        return Counters.parsed(self.page("/metrics").decode())

    def settled(self, before: Counters, requests: int) -> Counters:
        """What was added since `before`, once the server has booked that many more requests."""

        def booked() -> Counters | None:
            added = self.counters().since(before)
            return added if added["request_success_total"] >= requests else None

        return eventually(booked, f"{requests} requests in the server's counters")

    def token_count(self, messages: list[dict[str, str]]) -> int:
        """Tokens of a conversation with the opening of the next answer, by the server's own tokenizer."""
        answer = json.loads(self.page("/tokenize", {"messages": messages, "add_generation_prompt": True}))
        return int(answer["count"])

    def warm_up(self) -> None:
        """The first requests after a start are slow."""
        for prompt in ("Warm up:", "The weather in the north is " * 60):
            body = {"prompt": prompt, "max_tokens": 16, "temperature": 0, "ignore_eos": True}
            self.page("/v1/completions", {"model": "gemma3-270m", **body}, timeout=120)

    def is_healthy(self) -> bool:
        try:
            self.page("/health", timeout=5)
        except (URLError, OSError):
            return False
        return True


class FrontEnd:
    """One address before a server that may be replaced: connections are passed on to whoever serves at the time.

    Those that come while nobody serves are kept waiting, as a balancer before a deployment does.
    """

    def __init__(self, server: Server) -> None:
        self._backend: str | None = server.url
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "FrontEnd":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.lead_to(None)
        self._listener.close()

    def lead_to(self, server: Server | None) -> None:
        """New connections go there; None: they wait."""
        with self._changed:
            self._backend = None if server is None else server.url
            self._changed.notify_all()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._backend is not None)
            assert self._backend is not None
            port = int(self._backend.rpartition(":")[2])
        with client, suppress(OSError), socket.create_connection(("127.0.0.1", port)) as backend:
            upward = threading.Thread(target=_pass_on, args=(client, backend), daemon=True)
            upward.start()
            _pass_on(backend, client)
            upward.join()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Until one side ends; then both are told."""
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def eventually(look: Callable[[], Any], what: str, *, within_s: float = SETTLE_S) -> Any:
    """The first value of `look` that is not None or False; fails when there is none in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        found = look()
        if found is not None and found is not False:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {within_s} s: {what}")


@contextmanager
def serve(method: str, log: Path, *arguments: str) -> Iterator[Server]:
    """A server of that method, healthy; at the end it is gone, whatever happened."""
    script = material("real-engine", "serve.sh")
    real_engine()
    port = _free_port()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [script, method, str(port), *number_format(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    server = Server(process, port, log)
    try:
        _wait_until_healthy(server)
        yield server
    finally:
        _stop(process)


def number_format() -> list[str]:
    """A processor without AVX-512 works in bfloat16 at a third of its speed in float32, and in prefill at a sixth."""
    return [] if "avx512" in Path("/proc/cpuinfo").read_text() else ["--dtype", "float32"]


def _wait_until_healthy(server: Server) -> None:
    deadline = time.monotonic() + START_S
    while not server.is_healthy():
        ended = server.process.poll() is not None
        if ended or time.monotonic() > deadline:
            tail = server.log.read_text(errors="replace")[-3_000:]
            pytest.fail(f"the server {'ended' if ended else f'was not healthy within {START_S} s'}:\n{tail}")
        time.sleep(0.5)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM, then SIGKILL to all that the server started: it leads a session, so its number is that of its group."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(STOP_S)


def _die_with_parent() -> None:
    """A server of six gigabytes must not outlive tests that were killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    stdout: str
    stderr: str
    out: Path

    @property
    def result(self) -> dict[str, Any]:
        """What it printed as JSON."""
        return json.loads(self.stdout)  # type: ignore[no-any-return]

    @property
    def folder(self) -> Path:
        """The one folder that it left."""
        (folder,) = self.out.iterdir()
        return folder

    @property
    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "manifest.json").read_text())  # type: ignore[no-any-return]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The run's records by number."""
        return records_of(self.folder)


def records_of(folder: Path) -> list[dict[str, Any]]:
    """The records of a run folder by number, without the project's own reader."""
    with (folder / "records.jsonl.zst").open("rb") as file:
        plain = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        found = [json.loads(line) for line in io.TextIOWrapper(plain, encoding="utf-8")]
    return sorted(found, key=lambda record: record["seq"])


def loadgen_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "loadgen", *map(str, arguments)]


def loadgen(*arguments: object, out: Path | None = None) -> Done:
    """Runs a command; one that sends load (`out` given) prints JSON and makes `out` for what it writes."""
    if out is not None:
        arguments = (*arguments, "--out", out, "--json", "--no-progress")
    done = subprocess.run(
        loadgen_command(*arguments), capture_output=True, text=True, timeout=COMMAND_S, cwd=REPOSITORY, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr, out or REPOSITORY)


def write_prompts(path: Path, prompts: list[str]) -> Path:
    """A prompts file."""
    path.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    return path


def counted(values: list[Any]) -> dict[Any, int]:
    """How often each value is there."""
    counts: dict[Any, int] = defaultdict(int)
    for value in values:
        counts[value] += 1
    return dict(counts)


def check_token_counts(record: dict[str, Any]) -> None:
    """The tokens in a completed record's events are the server's count, less those after the last event with text."""
    missing = record["output_tokens"] - sum(record["event_tokens"])
    assert len(record["event_tokens"]) == len(record["event_ns"])
    assert missing == 0 or ("trailing_tokens" in record["notes"] and 0 < missing <= 1 + DRAFT_TOKENS), record


def check_origins_agree(summary: dict[str, Any], added: Counters) -> None:
    """Counters and blocks are exactly equal, and the server's own; a stream that lost many steps is doubted.

    Some steps share an event with the next: what ends inside a character, or what a busy front end sends together.
    """
    speculation = summary["speculation"]
    assert {view["origin"] for view in speculation["views"]} == {"counters", "per_request", "stream"}
    pairs = {(each["left"], each["right"], each["quantity"]): each for each in speculation["agreement"]}
    for quantity, name in {
        "steps": "spec_decode_num_drafts_total",
        "drafted_tokens": "spec_decode_num_draft_tokens_total",
        "accepted_tokens": "spec_decode_num_accepted_tokens_total",
    }.items():
        told = pairs["counters", "per_request", quantity]
        assert told["left_value"] == told["right_value"] == added[name]
        assert (told["allowed"], told["agrees"]) == ([0, 0], True)
    steps = pairs["counters", "stream", "decode_steps"]
    assert 0 <= steps["difference"] < 0.5 * steps["left_value"]
    findings = {finding["kind"] for finding in summary["verdict"]["findings"]}
    if steps["difference"] <= steps["allowed"][1]:
        assert all(each["agrees"] for each in speculation["agreement"]), speculation["agreement"]
        assert "acceptance_disagrees" not in findings
    if steps["difference"] - steps["allowed"][1] > 0.05 * steps["left_value"]:
        assert "acceptance_disagrees" in findings
    assert findings.isdisjoint({"foreign_traffic", "server_partly_read", "scrape_failed"})
