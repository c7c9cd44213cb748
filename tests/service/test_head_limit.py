"""Requests whose head does not end, on a real socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from loadgen.service.head_limit import BoundedHead


class Impatient(BoundedHead):
    """One that waits for a head a moment."""

    HEAD_S = 0.05


async def _answers(_scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


@asynccontextmanager
async def connected(kind: type[BoundedHead]) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """To a server that speaks so."""
    config = uvicorn.Config(_answers, http=kind, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: kind(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()


async def _write_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, piece: bytes) -> None:
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nx: ")
    for _ in range(300):
        writer.write(piece)
        await writer.drain()
    await asyncio.wait_for(reader.read(), 5)


@pytest.mark.parametrize("piece", [b"a" * 65_536, b"a: b\r\n" * 10_000])
async def test_a_head_without_end_is_cut_off(piece: bytes) -> None:
    """One header or many: nothing of it is kept for longer than a connection of a few hundred kilobytes."""
    async with connected(BoundedHead) as (reader, writer):
        with pytest.raises(ConnectionError):
            await _write_on(reader, writer, piece)


async def test_a_head_that_does_not_come_is_given_up() -> None:
    """Neither a connection that says nothing holds a place for ever, nor a second head on one that was used."""
    async with connected(Impatient) as (reader, _):
        assert await asyncio.wait_for(reader.read(), 10) == b""
    async with connected(Impatient) as (reader, writer):
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"204" in await reader.readuntil(b"\r\n\r\n")
        writer.write(b"GET / HT")
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_heads_and_bodies_that_are_well_come_through() -> None:
    """One after another on a connection, each in its time, a body of any size and any number of heads."""
    async with connected(BoundedHead) as (reader, writer):
        body = b"b" * 3_000_000
        for _ in range(2):
            writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            assert b"204" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        for _ in range(30):
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 50_000 + b"\r\n\r\n")
            assert b"204" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
