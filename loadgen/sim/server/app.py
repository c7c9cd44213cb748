"""The simulated server: HTTP around the engine. Requests become answers, pages are shown, and faults happen."""

import asyncio
import hmac
import random
import secrets
from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from typing import Any, TypeVar
from weakref import WeakSet

import msgspec

from loadgen.core.simulation.engine import Engine
from loadgen.core.units import NS_PER_S, nanoseconds
from loadgen.engine.ports import Clock
from loadgen.sim.http import Connection, Exchange, listen
from loadgen.sim.server.asked import read_request
from loadgen.sim.server.dialect import Dialect, Reply, ServerFacts
from loadgen.sim.server.exchange import Answer, Asked, Output, RefusedError, Route
from loadgen.sim.server.faults import Fault, FaultKind, Faults
from loadgen.sim.server.language import LanguageModel
from loadgen.sim.server.lateness import Lateness, LatenessReport
from loadgen.sim.server.prompts import block_names, chat_ids
from loadgen.sim.server.replies import StreamReply, WholeReply
from loadgen.sim.server.serving import Serving
from loadgen.sim.server.tokens import ids_of, text_of

T = TypeVar("T")

_ROUTES = {"/v1/chat/completions": Route.CHAT, "/v1/completions": Route.COMPLETIONS}
_MOST_TOKENS = 1_000_000
"""Of one request, all choices together: answers are decided when requests come, and this many take a second."""
_PAGE_NS = 20_000_000
"""More than a page takes: vLLM's metrics, the longest, take about 6 ms."""
_REFUSING = {FaultKind.RATE_LIMITED: 429, FaultKind.UNAVAILABLE: 503}


class Simulator:
    """The server. `engine` makes one, again after a restart; `warn` gets what people should know while it runs.

    It serves while `run` does. Requests without a seed get one from `seed` and their number.
    """

    def __init__(
        self,
        *,
        dialect: Dialect,
        facts: ServerFacts,
        engine: Callable[[], Engine],
        language: LanguageModel,
        clock: Clock,
        warn: Callable[[str], None],
        faults: Faults = Faults(),  # noqa: B008 - a frozen value
        speed: float = 1.0,
        seed: int = 0,
        api_key: str | None = None,
    ) -> None:
        self._dialect, self._facts, self._engine, self._language = dialect, facts, engine, language
        self._clock, self._faults, self._speed, self._seed, self._api_key = clock, faults, speed, seed, api_key
        self._lateness = Lateness(warn)
        self._serving = self._started()
        self._ready_ns = 0
        self._keys = count()
        self._admission, self._showing = asyncio.Lock(), asyncio.Lock()
        self._reading, self._writing, self._naming = _Work(), _Work(), _Work()
        self._exchanges: WeakSet[Exchange] = WeakSet()
        self.requests = 0

    @property
    def model(self) -> str:
        """The served model's name."""
        return self._facts.model

    @property
    def lateness(self) -> LatenessReport:
        """How late emissions were so far."""
        return self._lateness.report()

    async def run(self) -> None:
        """Generates until it is cancelled, through the restart that the faults have."""
        self._ready_ns = self._clock.now_ns() + nanoseconds(self._faults.slow_start_s)
        restart = self._faults.restart
        if restart is not None:
            try:
                async with asyncio.timeout(restart.at_s):
                    await self._serving.run()
            except TimeoutError:
                self._ready_ns = self._clock.now_ns() + nanoseconds(restart.down_s)
                self._serving = self._started()
                for exchange in [exchange for exchange in self._exchanges if exchange.open]:
                    abandon = exchange.on_gone
                    exchange.reset()
                    abandon()
        await self._serving.run()

    def connection(self) -> Connection:
        """For a client that connects."""
        return Connection(self._clock.now_ns, self._take)

    def _started(self) -> Serving:
        return Serving(self._engine(), self._dialect.statistics(), self._clock, self._lateness, speed=self._speed)

    # Routes

    def _take(self, exchange: Exchange) -> None:
        """Answers a request, or begins to. Whatever takes a while is a task's, which ends when the client leaves."""
        route = _ROUTES.get(exchange.path) if exchange.method == "POST" else None
        if exchange.path == "/sim/lateness":
            reply = _json(self.lateness)
        elif self._clock.now_ns() < self._ready_ns:
            reply = self._refusal(RefusedError(503, "ServiceUnavailableError", "The server is starting."))
        elif not self._admits(exchange):
            reply = _json({"error": "Unauthorized"}, 401)
        else:
            self._exchanges.add(exchange)
            exchange.on_gone = asyncio.get_running_loop().create_task(self._answer(exchange, route)).cancel
            return
        _respond(exchange, reply)

    async def _answer(self, exchange: Exchange, route: Route | None) -> None:
        try:
            try:
                reply = await (self._show(exchange) if route is None else self._generate(exchange, route))
            except RefusedError as refused:
                reply = self._refusal(refused)
            if reply is not None:
                _respond(exchange, reply)
        except Exception:
            exchange.respond(500, "text/plain; charset=utf-8", b"Internal Server Error")
            raise

    def _admits(self, exchange: Exchange) -> bool:
        if self._api_key is None or not exchange.path.startswith("/v1"):
            return True
        scheme, _, given = exchange.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), self._api_key.encode())

    async def _show(self, exchange: Exchange) -> Reply:
        """A page, one after the other: right after a burst, unless the next one is far."""
        async with self._showing:
            await self._serving.spare(_PAGE_NS)
            return self._page(exchange)

    def _page(self, exchange: Exchange) -> Reply:
        method = "GET" if exchange.method == "HEAD" else exchange.method
        own = self._dialect.page(method, exchange.target, exchange.body, self._serving.statistics)
        if own is not None:
            return own
        match method, exchange.path:
            case "GET", "/health":
                return Reply(200, "application/json" if self._dialect.health else "", self._dialect.health)
            case "GET", "/v1/models":
                return _json(
                    {"object": "list", "data": [self._dialect.model_card(self._clock.origin_unix_ns // NS_PER_S)]}
                )
            case "GET", "/load":
                return _json({"server_load": sum(each.open and each.path in _ROUTES for each in self._exchanges)})
            case "POST", "/tokenize":
                return self._tokenize(_object(exchange.body))
            case "POST", "/detokenize":
                return self._detokenize(_object(exchange.body))
        reset = self._dialect.cache_reset
        if reset is not None and exchange.path == reset.path and exchange.method in reset.methods:
            return reset.done if self._serving.forget_prefixes() else reset.refused
        known = exchange.path in (*_ROUTES, *_OWN_PAGES, *(() if reset is None else (reset.path,)))
        status = HTTPStatus.METHOD_NOT_ALLOWED if known else HTTPStatus.NOT_FOUND
        return _json({"detail": status.phrase}, status)

    def _tokenize(self, asked: dict[str, Any]) -> Reply:
        match asked:
            case {"messages": list(messages)} if all(isinstance(message, dict) for message in messages):
                ids = chat_ids(messages)
            case {"prompt": str(text)} | {"content": str(text)}:
                ids = ids_of(text)
            case _:
                raise RefusedError(400, "BadRequestError", "a text is needed, as prompt or messages", param="prompt")
        strings = [text_of([token]) for token in ids] if asked.get("return_token_strs") else None
        told = {"count": len(ids), "max_model_len": self._facts.max_model_len, "tokens": ids, "token_strs": strings}
        return _json(told)

    def _detokenize(self, asked: dict[str, Any]) -> Reply:
        match asked:
            case {"tokens": list(ids)} if all(type(token) is int and token >= 0 for token in ids):
                try:
                    return _json({"prompt": text_of(ids)})
                except IndexError:
                    pass
        raise RefusedError(400, "BadRequestError", "a list of the vocabulary's token ids is needed", param="tokens")

    def _refusal(self, refused: RefusedError, retry_after_s: float | None = None) -> Reply:
        headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
        return Reply(refused.status, "application/json", self._dialect.refusal(refused), headers)

    # Generation

    async def _generate(self, exchange: Exchange, route: Route) -> Reply | None:
        """Has a request served, which gives the answer; or the reply of a fault that refuses it."""
        self.requests += 1
        number = self.requests
        fault, received_ns = self._faults.for_request(number), exchange.received_ns
        if fault is not None and fault.kind is FaultKind.DELAY:
            await self._clock.sleep_until(received_ns + nanoseconds(fault.delay_s))
            fault, received_ns = None, self._clock.now_ns()
        if fault is not None and fault.kind in _REFUSING:
            status = HTTPStatus(_REFUSING[fault.kind])
            refused = RefusedError(status, status.phrase.replace(" ", "") + "Error", f"{status.phrase}.")
            return self._refusal(refused, fault.retry_after_s)
        async with self._admission:
            await self._admit(exchange, route, number, received_ns, fault)
        return None

    async def _admit(
        self, exchange: Exchange, route: Route, number: int, received_ns: int, fault: Fault | None
    ) -> None:
        """Reads a request, decides its whole answer and has it served. Work of some length waits for its time."""
        request_id = exchange.headers.get("x-request-id") or secrets.token_hex(8)

        def read() -> Asked:
            return read_request(
                route,
                exchange.body,
                request_id=request_id,
                model=self._facts.model,
                max_model_len=self._facts.max_model_len,
                speculates=self._facts.speculator is not None,
            )

        asked = await self._spared(self._reading, len(exchange.body), read)
        seed = random.Random(f"{self._seed}/{number}").getrandbits(63)
        tokens = asked.max_tokens if asked.ignore_eos else min(asked.max_tokens, round(self._language.output_tokens))
        if asked.n * tokens > _MOST_TOKENS:
            message = (
                f"this server generates at most {_MOST_TOKENS:,} tokens a request, got n={asked.n} times {tokens}."
            )
            raise RefusedError(400, "BadRequestError", message, param="n")
        outputs = await self._spared(
            self._writing, asked.n * tokens, lambda: self._language.generate(asked, fresh_seed=seed)
        )
        known = sum(len(asked.prompt_ids) + len(output.ids) for output in outputs)
        names = await self._spared(self._naming, known, lambda: [self._blocks(asked, output) for output in outputs])
        serving = self._serving
        answers = [
            Answer(
                key=next(self._keys),
                index=index,
                asked=asked,
                output=output,
                created_s=(self._clock.origin_unix_ns + received_ns) // NS_PER_S,
                received_ns=serving.simulated_ns(received_ns),
            )
            for index, output in enumerate(outputs)
        ]
        reply = (StreamReply if asked.stream else WholeReply)(exchange, answers, self._dialect, serving, fault)
        for answer, blocks in zip(answers, names, strict=True):
            serving.submit(answer, blocks, reply)

    def warm_up(self) -> None:
        """Makes what is made once, the language's tables above all, before anybody waits for it."""
        body = msgspec.json.encode({"prompt": ".", "max_tokens": 1})
        asked = read_request(Route.COMPLETIONS, body, request_id="", model=self.model, max_model_len=2)
        self._language.generate(asked, fresh_seed=0)

    async def _spared(self, work: "_Work", units: int, do: Callable[[], T]) -> T:
        """Does work that would delay a burst where it does not."""
        await self._serving.spare(work.expected_ns(units))
        started_ns = self._clock.now_ns()
        result = do()
        work.took(units, self._clock.now_ns() - started_ns)
        return result

    def _blocks(self, asked: Asked, output: Output) -> tuple[int, ...]:
        if not self._facts.prefix_caching:
            return ()
        return block_names(asked.prompt_ids + output.ids, asked.cache_salt, self._facts.block_tokens)


_OWN_PAGES = (
    "/health",
    "/v1/models",
    "/load",
    "/tokenize",
    "/detokenize",
)


def _respond(exchange: Exchange, reply: Reply) -> None:
    exchange.respond(reply.status, reply.content_type, reply.body, reply.headers)


class _Work:
    """Work of one kind, and how long a unit of it takes, learned from what was done."""

    def __init__(self) -> None:
        self._ns_per_unit = 1_000.0

    def expected_ns(self, units: int) -> int:
        """Twice the mean, so that little takes longer."""
        return round(2 * units * self._ns_per_unit)

    def took(self, units: int, ns: int) -> None:
        if units:
            self._ns_per_unit += (ns / units - self._ns_per_unit) / 8


def _json(value: Any, status: int = 200) -> Reply:
    return Reply(status, "application/json", msgspec.json.encode(value))


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(400, "BadRequestError", "the body is no JSON object") from None


async def serve(
    simulator: Simulator,
    host: str,
    port: int,
    *,
    listening: Callable[[str, int], None],
    until_stdin_closes: bool = False,
) -> None:
    """Serves until it is told to stop, as `listen` has it."""
    simulator.warm_up()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(simulator.run())
        await listen(simulator.connection, host, port, listening=listening, until_stdin_closes=until_stdin_closes)
        running.cancel()
