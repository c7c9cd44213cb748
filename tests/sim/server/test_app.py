"""The simulated server over real sockets, as vLLM would look: what is asked, what comes back, what goes wrong."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from loadgen.adapters.clock import MonotonicClock
from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Limits
from loadgen.core.simulation.step_time import StepTime
from loadgen.sim.server.app import Simulator
from loadgen.sim.server.dialect import Dialect, ServerFacts
from loadgen.sim.server.faults import Fault, FaultKind, Faults, Restart
from loadgen.sim.server.language import LanguageModel
from loadgen.sim.server.llamacpp import LlamacppDialect
from loadgen.sim.server.sglang import SglangDialect
from loadgen.sim.server.tensorrt_llm import TensorrtLlmDialect
from loadgen.sim.server.vllm import VllmDialect
from tests.sim.server.driven import facts

FACTS = replace(facts(None), max_sequences=256)
NO_FAULTS = Faults()
OTHERS = (LlamacppDialect, TensorrtLlmDialect)
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


def suffering(kind: FaultKind, **details: Any) -> Faults:
    """Every request has this fault."""
    return Faults(shares=((1.0, Fault(kind=kind, **details)),))


def asking(**fields: Any) -> dict[str, Any]:
    """A greedy completion of six tokens."""
    return {"prompt": "a b c", "max_tokens": 6, "ignore_eos": True, "temperature": 0} | fields


async def test_a_stream_says_what_the_whole_answer_does():
    """The same greedy request gives the same text in events, one a step, and in one body, on one connection."""
    async with simulated() as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=True), x_request_id="mine")
        streamed = await client.answer()
        await client.send("POST", TEXT, asking())
        whole = await client.answer()
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = streamed.events
    assert {event["id"] for event in events} == {"cmpl-mine"}
    assert len(events) == 6
    assert "".join(event["choices"][0]["text"] for event in events) == whole.json["choices"][0]["text"]
    assert whole.headers["content-type"] == "application/json"
    assert whole.json["usage"]["completion_tokens"] == 6


async def test_steps_set_the_pace():
    """An event a step: six tokens take at least six steps, and not much longer on the server's own account."""
    async with simulated(step_s=0.01) as server:
        started = time.monotonic()
        await server.ask("POST", TEXT, asking(stream=True))
        assert time.monotonic() - started >= 0.06
        figures = (await server.ask("GET", "/sim/lateness")).json
    assert (figures["emissions"], figures["missed"]) == (6, 0)
    assert figures["max_s"] < 5


async def test_choices_share_a_stream():
    """The roles come first, then each choice's six events, then one end."""
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 6,
        "ignore_eos": True,
        "n": 2,
        "stream": True,
    }
    async with simulated() as server:
        choices = [event["choices"][0] for event in (await server.ask("POST", CHAT, body)).events]
    assert [choice["index"] for choice in choices[:2]] == [0, 1]
    assert all(choice["delta"] == {"role": "assistant", "content": ""} for choice in choices[:2])
    assert sorted(choice["index"] for choice in choices[2:]) == [0] * 6 + [1] * 6


async def test_a_stream_interval_merges_events():
    """The first token comes at once, then events of at least four, and the rest at the end."""
    async with simulated() as server:
        asked = asking(max_tokens=11, stream=True, stream_interval=4, return_token_ids=True)
        events = (await server.ask("POST", TEXT, asked)).events
    assert [len(event["choices"][0]["token_ids"]) for event in events] == [1, 4, 4, 2]


async def test_many_at_once_run_in_the_same_steps():
    """Sixty-four requests that come together are served together, and each gets its own answer."""
    async with simulated() as server:
        answers = await asyncio.gather(
            *(server.ask("POST", TEXT, asking(prompt=f"question {number}", stream=True)) for number in range(64))
        )
        steps = await server.metric("vllm:iteration_tokens_total_count")
    texts = {"".join(event["choices"][0]["text"] for event in answer.events) for answer in answers}
    assert len(texts) == 64
    assert steps < 64 * 6 / 2, "shared steps: alone, each would need six of its own"


async def test_what_was_computed_once_is_found_again():
    """A prompt's full blocks are cached for the next that begins with them, until the cache is emptied."""

    async def cached(server: Server) -> int:
        answer = await server.ask("POST", TEXT, asking(prompt=list(range(1000, 1040))))
        return int(answer.json["usage"]["prompt_tokens_details"]["cached_tokens"])

    async with simulated() as server:
        assert [await cached(server), await cached(server)] == [0, 32]
        assert (await server.ask("POST", "/reset_prefix_cache")).json == {"success": True}
        assert await cached(server) == 0


@pytest.mark.parametrize(
    ("dialect", "asked", "says"),
    [
        (VllmDialect, ("POST", "/reset_prefix_cache"), (200, b'{"success":true}')),
        (VllmDialect, ("GET", "/reset_prefix_cache"), (405, None)),
        (VllmDialect, ("POST", "/flush_cache"), (404, None)),
        (SglangDialect, ("POST", "/flush_cache"), (200, b"Cache flushed.\n")),
        (SglangDialect, ("GET", "/flush_cache"), (200, b"Cache flushed.\n")),
        (SglangDialect, ("POST", "/reset_prefix_cache"), (404, None)),
        *((other, ("POST", path), (404, None)) for other in OTHERS for path in ("/reset_prefix_cache", "/flush_cache")),
    ],
)
async def test_each_dialect_empties_its_cache_by_its_own_page(dialect, asked, says):
    """And has no other's; `GET` on vLLM's tells that it is there without emptying anything."""
    async with simulated(dialect=dialect) as server:
        answer = await server.ask(*asked)
    assert answer.status == says[0]
    assert says[1] in (None, answer.body)


@pytest.mark.parametrize(
    ("dialect", "path", "says"),
    [
        (VllmDialect, "/reset_prefix_cache", (200, b'{"success":false}')),
        (SglangDialect, "/flush_cache", (400, b"Requests are running: the cache was not flushed.\n")),
    ],
)
async def test_a_cache_in_use_is_not_emptied(dialect, path, says):
    """Each dialect says so in its own way."""
    async with simulated(step_s=0.05, dialect=dialect) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(stream=True))
        await client.head()
        await client.piece()
        answer = await server.ask("POST", path)
    assert (answer.status, answer.body) == says


async def test_a_request_that_cannot_be_served_is_refused():
    """With the dialect's words and the request's status, and the connection carries on."""
    async with simulated() as server, server.connected() as client:
        await client.send("POST", TEXT, asking(model="other"))
        refused = await client.answer()
        await client.send("POST", TEXT, b"{")
        broken = await client.answer()
        await client.send("POST", TEXT, asking())
        assert (await client.answer()).status == 200
    assert (refused.status, refused.json["error"]["code"]) == (404, 404)
    assert broken.status == 400


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"cache_salt": "\ud800"}, 200),
        ({"stop": "\ud800"}, 200),
        ({"prompt": "\ud800"}, 200),
        ({"model": "\ud800"}, 404),
        ({"logprobs": "\ud800"}, 400),
        ({"logit_bias": {"\ud800": "much"}}, 400),
    ],
)
async def test_half_a_surrogate_pair_is_answered(fields, status):
    """JSON can hold what UTF-8 cannot: it is worked with, or told as a question mark where a refusal repeats it."""
    async with simulated() as server:
        answered = await server.ask("POST", TEXT, asking(**fields))
    assert answered.status == status
    assert ("?" in answered.json.get("error", {}).get("message", "?")) == (fields.keys() != {"logit_bias"})


async def test_more_than_a_server_can_generate_is_refused():
    """A million tokens are the limit of one request, all choices together; the answer does not take long."""
    async with simulated() as server:
        refused = await server.ask("POST", TEXT, asking(n=500, max_tokens=2001, temperature=1))
        assert refused.status == 400
        assert "at most 1,000,000 tokens a request, got n=500 times 2001" in refused.json["error"]["message"]


async def test_a_page_waits_for_the_burst():
    """A page asked for right after an event of a stream comes no earlier than the next one, a step later."""
    async with simulated(step_s=0.015) as server, server.connected() as client:
        await client.send("POST", TEXT, asking(max_tokens=20, stream=True))
        await client.head()
        waits_s = []
        for _ in range(5):
            await client.piece()
            asked_s = time.monotonic()
            await server.ask("GET", "/version")
            waits_s.append(time.monotonic() - asked_s)
    assert sorted(waits_s)[2] > 0.01


async def test_a_client_that_leaves_ends_its_request():
    """Its answer is aborted, which is no success, and the server holds nothing of it any more."""
    async with simulated() as server:
        async with server.connected() as client:
            await client.send("POST", TEXT, asking(max_tokens=4000, stream=True))
            await client.head()
            await client.piece()
            assert (await server.ask("GET", "/load")).json == {"server_load": 1}
        while await server.metric("vllm:num_requests_running"):
            pass
        assert (await server.ask("GET", "/load")).json == {"server_load": 0}
        assert await server.metric("vllm:request_success_total") == 0
        assert await server.metric("vllm:kv_cache_usage_perc") == 0


async def test_its_pages():
    """Health, models, load and the dialect's own pages; what there is not is a 404, with the wrong method a 405."""
    async with simulated() as server:
        health = await server.ask("GET", "/health")
        assert (health.status, health.body) == (200, b"")
        (model,) = (await server.ask("GET", "/v1/models")).json["data"]
        assert (model["id"], model["owned_by"], model["max_model_len"]) == ("m", "vllm", 4096)
        assert [permission["object"] for permission in model["permission"]] == ["model_permission"]
        assert (await server.ask("GET", "/version")).status == 200
        info = await server.ask("GET", "/server_info?config_format=json")
        assert isinstance(info.json["vllm_config"], dict), "a page gets its query"
        assert (await server.ask("GET", "/nothing")).json == {"detail": "Not Found"}
        assert (await server.ask("GET", TEXT)).status == 405
        assert (await server.ask("POST", "/health")).status == 405


async def test_text_becomes_tokens_and_tokens_text():
    """Tokenizing there and back gives the text again; what is neither text nor tokens is refused."""
    async with simulated() as server:
        told = (await server.ask("POST", "/tokenize", {"prompt": "Some words, and überall."})).json
        assert told["count"] == len(told["tokens"])
        back = await server.ask("POST", "/detokenize", {"tokens": told["tokens"]})
        assert back.json == {"prompt": "Some words, and überall."}
        chat = await server.ask("POST", "/tokenize", {"messages": [{"role": "user", "content": "hi"}]})
        assert chat.json["count"] > 2
        for path, body in (
            ("/tokenize", {"prompt": 1}),
            ("/tokenize", b"nonsense"),
            ("/tokenize", {"messages": ["hi"]}),
            ("/detokenize", {"tokens": [10**9]}),
            ("/detokenize", {"tokens": ["a"]}),
        ):
            assert (await server.ask("POST", path, body)).status == 400


async def test_a_key_is_asked_for_where_one_is_set():
    """Without the right key the API says 401; health and metrics need none."""
    async with simulated(api_key="secret") as server:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}):
            refused = await server.ask("POST", TEXT, asking(), **headers)
            assert (refused.status, refused.json) == (401, {"error": "Unauthorized"})
        assert (await server.ask("POST", TEXT, asking(), authorization="Bearer secret")).status == 200
        assert (await server.ask("GET", "/health")).status == 200


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
