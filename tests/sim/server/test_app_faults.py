"""The faults of the simulated server over real sockets: delays, resets, ends before the end, restarts."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from loadgen.sim.server.faults import Fault, FaultKind, Faults, Restart
from tests.sim.server.listening import TEXT, asking, simulated


def suffering(kind: FaultKind, **details: Any) -> Faults:
    """Every request has this fault."""
    return Faults(shares=((1.0, Fault(kind=kind, **details)),))


async def test_a_delay_comes_before_the_first_byte():
    """Nothing for 200 ms, then the answer as ever: for the engine the request has only just come."""
    async with simulated(suffering(FaultKind.DELAY, delay_s=0.2)) as server, server.connected() as client:
        started = time.monotonic()
        await client.send("POST", TEXT, asking(stream=True))
        await client.reader.readexactly(1)
        assert time.monotonic() - started >= 0.2
        await client.reader.readuntil(b"[DONE]")
        assert (await server.ask("GET", "/sim/lateness")).json["max_s"] < 0.15


@pytest.mark.parametrize("restart", [None, Restart(at_s=0.02, down_s=0.0)])
async def test_who_is_gone_before_the_delay_is_over_gets_nothing(restart):
    """Neither a client that left nor one whom a restart cut off costs the engine anything."""
    faults = replace(suffering(FaultKind.DELAY, delay_s=0.05), restart=restart)
    async with simulated(faults) as server:
        async with server.connected() as client:
            await client.send("POST", TEXT, asking())
            if restart is not None:
                with pytest.raises(ConnectionResetError):
                    await client.reader.read()
        await asyncio.sleep(0.1)
        assert (await server.ask("GET", "/load")).json == {"server_load": 0}
        assert await server.metric("vllm:generation_tokens_total") == 0


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_connection_that_is_reset(stream, after):
    """After its events the client gets a reset, and the engine is rid of the request."""
    faults = suffering(FaultKind.RESET, after_events=after)
    async with simulated(faults) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=stream))
        if stream:
            await client.head()
            assert all([await client.piece() for _ in range(after)])
        with pytest.raises(ConnectionResetError):
            await client.reader.readexactly(1)
        assert (await server.ask("GET", "/load")).json == {"server_load": 0}
        assert await server.metric("vllm:num_requests_running") == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_is_cut_off(stream):
    """The connection closes without the end of the answer."""
    faults = suffering(FaultKind.TRUNCATED, after_events=2)
    async with simulated(faults) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=stream))
        received = await client.reader.read()
    assert received.count(b"data: {") == (2 if stream else 0)
    assert not received.endswith(b"0\r\n\r\n")


async def test_a_stream_that_ends_in_an_error():
    """After two events comes one with an error, and the stream ends as a stream does."""
    async with simulated(suffering(FaultKind.ERROR_EVENT, after_events=2)) as server:
        events = (await server.ask("POST", TEXT, asking(stream=True))).events
        assert [("error" in event) for event in events] == [False, False, True]
        assert (await server.ask("POST", TEXT, asking())).status == 500


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_stalls(stream):
    """Nothing more comes, and the connection stays open until the client leaves."""
    faults = suffering(FaultKind.STALL, after_events=2)
    async with simulated(faults) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=stream))
        if stream:
            await client.head()
            assert [await client.piece(), await client.piece()]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.reader.read(1), 0.05)
        assert (await server.ask("GET", "/load")).json == {"server_load": 1}


async def test_a_fault_that_comes_too_late_does_not_strike():
    """A stream with no more events than the fault lets through is complete."""
    async with simulated(suffering(FaultKind.RESET, after_events=6)) as server:
        assert len((await server.ask("POST", TEXT, asking(stream=True))).events) == 6


@pytest.mark.parametrize(
    ("kind", "status", "retry_after_s", "header"),
    [(FaultKind.RATE_LIMITED, 429, 1.5, "1.5"), (FaultKind.UNAVAILABLE, 503, None, None)],
)
async def test_a_refusal_says_when_to_come_again(kind, status, retry_after_s, header):
    """The status of the fault, in the dialect's form, with Retry-After where it has one."""
    async with simulated(suffering(kind, retry_after_s=retry_after_s)) as server:
        refused = await server.ask("POST", TEXT, asking())
    assert (refused.status, refused.json["error"]["code"]) == (status, status)
    assert refused.headers.get("retry-after") == header


async def test_a_server_that_starts_slowly_is_not_ready_at_first():
    """Until then it says 503 to everything."""
    async with simulated(Faults(slow_start_s=0.1)) as server:
        await asyncio.sleep(0)
        for method, path in (("GET", "/health"), ("POST", TEXT), ("GET", "/metrics")):
            assert (await server.ask(method, path)).status == 503
        while (await server.ask("GET", "/health")).status == 503:
            pass
        assert (await server.ask("POST", TEXT, asking())).status == 200


async def test_a_restart_forgets_everything():
    """Streams are reset, nothing is served for a while, and then counters and cache begin anew."""
    async with simulated(Faults(restart=Restart(at_s=0.1, down_s=0.05))) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(max_tokens=4000, stream=True))
        await client.head()
        with pytest.raises(ConnectionResetError):
            await client.reader.read()
        assert (await server.ask("GET", "/health")).status == 503
        while (await server.ask("GET", "/health")).status == 503:
            pass
        assert await server.metric("vllm:generation_tokens_total") == 0
        assert await server.metric("vllm:num_requests_running") == 0
        assert (await server.ask("POST", TEXT, asking())).json["usage"]["completion_tokens"] == 6
        assert await server.metric("vllm:generation_tokens_total") == 6
