"""A transport that plays scripted answers at scripted instants, and a sink that keeps records in memory."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadgen.core.errors import StoreError
from loadgen.core.record import FailureKind, RequestRecord
from loadgen.core.run import TimingSource
from loadgen.engine.ports import Clock, Ending, Inbox


@dataclass(frozen=True)
class Script:
    """One answer: pieces of body as (seconds after sending, bytes), then an ending."""

    pieces: Sequence[tuple[float, bytes]]
    kind: FailureKind | None = None
    status: int = 200


def chat_stream(*times_s: float, text: str = "tok ") -> Script:
    """A chat stream with one token an event at these times, closed with usage and [DONE]."""
    pieces = []
    for index, at_s in enumerate(times_s):
        last = index == len(times_s) - 1
        chunk: dict[str, Any] = {
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop" if last else None}]
        }
        pieces.append((at_s, b"data: " + json.dumps(chunk).encode() + b"\n\n"))
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": len(times_s)}}
    pieces.append((times_s[-1], b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"))
    return Script(pieces)


@dataclass
class ScriptedTransport:
    """The Transport port. `answer` picks the script of the n-th request (from 0)."""

    clock: Clock
    answer: Callable[[int], Script]
    timing_source: TimingSource = TimingSource.USER
    sent: list[tuple[int, bytes]] = field(default_factory=list)
    in_flight: int = 0
    peak: int = 0
    opened: int = 0
    closed: bool = False

    def prepare(self, body: bytes, request_id: str) -> bytes:
        return body

    async def open(self, connections: int) -> None:
        self.opened = connections

    async def exchange(self, prepared: bytes, inbox: Inbox) -> Ending:
        script = self.answer(len(self.sent))
        sent_ns = inbox.sent_ns = self.clock.now_ns()
        self.sent.append((sent_ns, prepared))
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            for after_s, piece in script.pieces:
                await self.clock.sleep_until(sent_ns + round(after_s * 1e9))
                if inbox.headers_ns is None:
                    inbox.headers_ns = self.clock.now_ns()
                    inbox.status, inbox.content_type = script.status, "text/event-stream"
                inbox.stamps.append(self.clock.now_ns())
                inbox.pieces.append(piece)
            return Ending(closed_ns=self.clock.now_ns(), kind=script.kind)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        self.closed = True
        await asyncio.sleep(0)


@dataclass
class MemorySink:
    """The RecordSink port; fails after `fail_after` records when that is set."""

    records: list[RequestRecord] = field(default_factory=list)
    fail_after: int | None = None

    def put(self, record: RequestRecord) -> None:
        if self.fail_after is not None and len(self.records) >= self.fail_after:
            raise StoreError("the disk is full")
        self.records.append(record)
