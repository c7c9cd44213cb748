"""A simulated server that listens, and a client of it without any help."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loadgen.adapters.clock import MonotonicClock
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Limits
from loadgen.core.simulation.step_time import StepTime
from loadgen.sim.server.app import Simulator
from loadgen.sim.server.dialect import Dialect, ServerFacts
from loadgen.sim.server.faults import Faults
from loadgen.sim.server.language import LanguageModel
from loadgen.sim.server.vllm import VllmDialect
from tests.sim.server.driven import facts

FACTS = replace(facts(None), max_sequences=256)
NO_FAULTS = Faults()
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


@dataclass(frozen=True)
class Answered:
    """One answer, its chunks put together."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a stream but for its end marker."""
        *events, done = [line.removeprefix(b"data: ") for line in self.body.split(b"\n\n") if line]
        assert done == b"[DONE]"
        return [json.loads(event) for event in events]


@dataclass(frozen=True)
class Server:
    """A simulator that listens."""

    simulator: Simulator
    port: int

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Client"]:
        """A connection of a client of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Client(reader, writer)
        finally:
            writer.close()

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        """One request on a connection of its own, to the end of its answer."""
        async with self.connected() as client:
            await client.send(method, path, body, **headers)
            return await client.answer()

    async def metric(self, name: str) -> float:
        """A value of `/metrics`, 0 where there is none yet."""
        page = (await self.ask("GET", "/metrics")).body.decode()
        return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name))


@dataclass(frozen=True)
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> None:
        """A request."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        await self.writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of an answer."""
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        return int(first.split()[1]), {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }

    async def piece(self) -> bytes:
        """One chunk; empty at the end."""
        length = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(length + 2))[:-2]

    async def answer(self) -> Answered:
        """A whole answer."""
        status, headers = await self.head()
        body = b""
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            while piece := await self.piece():
                body += piece
        return Answered(status, headers, body)


@asynccontextmanager
async def simulated(
    faults: Faults = NO_FAULTS,
    *,
    step_s: float = 0.002,
    api_key: str | None = None,
    dialect: Callable[[ServerFacts], Dialect] = VllmDialect,
) -> AsyncIterator[Server]:
    """A server of this process."""

    def engine() -> Engine:
        step = StepTime(fixed_s=step_s, per_token_s=0.0, per_context_token_s=0.0, overhead_s=0.0)
        limits = Limits(kv_blocks=FACTS.kv_blocks, token_budget=FACTS.token_budget)
        return Engine(target=step, limits=limits, rng=np.random.default_rng(0))

    clock = MonotonicClock()
    simulator = Simulator(
        dialect=dialect(FACTS),
        facts=FACTS,
        engine=engine,
        language=LanguageModel(output_tokens=20),
        clock=clock,
        warn=lambda _: None,
        faults=faults,
        api_key=api_key,
    )
    simulator.warm_up()
    listener = await asyncio.get_running_loop().create_server(simulator.connection, "127.0.0.1", 0)
    async with listener, asyncio.TaskGroup() as group:
        running = group.create_task(simulator.run())
        yield Server(simulator, listener.sockets[0].getsockname()[1])
        running.cancel()
    clock.close()


def asking(**fields: Any) -> dict[str, Any]:
    """A greedy completion of six tokens."""
    return {"prompt": "a b c", "max_tokens": 6, "ignore_eos": True, "temperature": 0} | fields
