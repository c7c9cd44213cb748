"""Commands as a user calls them, in a process of their own, and a small server that only answers what it must."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.core.record import RequestRecord
from tests.fakes.scripted_server import CHUNKED, LAST_CHUNK, Peer, Request, ScriptedServer, chunk, plain


class Command:
    """A finished command; `out` is where its folders are."""

    def __init__(self, process: "subprocess.CompletedProcess[str]", out: Path) -> None:
        self.code, self.stdout, self.stderr, self.out = process.returncode, process.stdout, process.stderr, out

    @property
    def summary(self) -> dict[str, Any]:
        """What `--json` printed."""
        assert self.code != 2, self.stderr
        return json.loads(self.stdout)  # type: ignore[no-any-return]

    @property
    def findings(self) -> dict[str, str]:
        """Severity by kind."""
        return {finding["kind"]: finding["severity"] for finding in self.summary["verdict"]["findings"]}

    @property
    def folder(self) -> RunFolder:
        """The only run folder."""
        (path,) = self.out.iterdir()
        return RunFolder.open(path)

    @property
    def records(self) -> list[RequestRecord]:
        """Its records in the order of the plan."""
        return sorted(self.folder.records(), key=lambda record: record.seq)


def loadgen(
    command: str,
    *arguments: object,
    out: Path,
    env: dict[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Command:
    """Runs a command; `before` is called in the new process first, to limit what it may have."""
    where = ("--out", str(out)) if command in ("run", "sweep") else ()
    line = [sys.executable, "-m", "loadgen", command, *where, *map(str, arguments)]
    process = subprocess.run(
        line, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})}, preexec_fn=before
    )
    return Command(process, out)


def event(**chunk: Any) -> bytes:
    """One event of a chat stream."""
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


ANSWER = b"".join(
    (
        event(choices=[{"index": 0, "delta": {"content": "yes"}, "finish_reason": None}]),
        event(choices=[{"index": 0, "delta": {"content": " no"}, "finish_reason": "stop"}]),
        event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 2}),
        b"data: [DONE]\n\n",
    )
)
"""A whole chat stream of two tokens."""


@dataclass
class ChatServer:
    """Answers every POST with `answer` or, in turn, with what `answers` gives; has no other page than its model's.

    At the POST of the number `closes_at` it closes its door: connections that there are go on, and there are no others.
    """

    answer: tuple[bytes, ...] = (CHUNKED, chunk(ANSWER), LAST_CHUNK)
    answers: list[tuple[bytes, ...]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    closes_at: int | None = None

    def __enter__(self) -> "ChatServer":
        self._server = ScriptedServer(self._serve).__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._server.__exit__(*raised)

    @property
    def url(self) -> str:
        """Its base URL."""
        return self._server.url

    def _serve(self, peer: Peer) -> None:
        while (request := peer.read_request()) is not None:
            peer.send(*self._reply(request))

    def _reply(self, request: Request) -> tuple[bytes, ...]:
        if request.line.startswith("POST"):
            self.bodies.append(json.loads(request.body))
            if len(self.bodies) == self.closes_at:
                self._server.close_door()
            return self.answers.pop(0) if self.answers else self.answer
        if "/v1/models" in request.line:
            return (plain(b'{"data": [{"id": "m"}]}'),)
        return (plain(b"no", status="404 Not Found"),)
