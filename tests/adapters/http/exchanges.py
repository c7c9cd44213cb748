"""What the transport tests share: a transport for the length of a test, and one exchange on it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from loadgen.adapters.clock import MonotonicClock
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.httpx_transport import HttpxTransport
from loadgen.adapters.http.native import NativeTransport
from loadgen.engine.ports import Ending, Inbox, Timeouts, Transport

PATH = "/v1/chat/completions"
PATIENT = Timeouts(connect_s=5.0, idle_s=5.0)


@contextlib.asynccontextmanager
async def native(
    url: str, *, timeouts: Timeouts = PATIENT, spares: int = 0, **options: Any
) -> AsyncIterator[NativeTransport]:
    """A native transport to `url`; `options` are the destination's."""
    clock = MonotonicClock()
    transport = NativeTransport(
        Destination.from_url(url, **options), clock, path=PATH, timeouts=timeouts, spares=spares
    )
    try:
        yield transport
    finally:
        await transport.close()
        clock.close()


@contextlib.asynccontextmanager
async def httpx(
    url: str, *, timeouts: Timeouts = PATIENT, http2: bool = False, proxy: str | None = None, **options: Any
) -> AsyncIterator[HttpxTransport]:
    """An httpx2 transport to `url`; `options` are the destination's."""
    clock = MonotonicClock()
    transport = HttpxTransport(
        Destination.from_url(url, **options), clock, path=PATH, timeouts=timeouts, http2=http2, proxy=proxy
    )
    try:
        yield transport
    finally:
        await transport.close()
        clock.close()


TRANSPORTS = {"native": native, "httpx": httpx}


async def exchange(transport: Transport, *, body: bytes = b"{}", request_id: str = "r-1") -> tuple[Ending, Inbox]:
    """One request, prepared and carried out."""
    inbox = Inbox()
    ending = await transport.exchange(transport.prepare(body, request_id), inbox)
    return ending, inbox


def text(inbox: Inbox) -> bytes:
    """The body as received."""
    return b"".join(inbox.pieces)


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def until(condition) -> None:
    """Waits, at most 5 s, for something that another thread or the network brings about."""
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("did not come about in 5 s")


def block_loop(s: float, *, until=lambda: True) -> None:
    """What a busy client does to its event loop: nothing else runs for so long, and again until something is so."""
    time.sleep(s)
    while not until():
        time.sleep(s)
