"""The real-time loop, in virtual time: when what is emitted, and how late."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import numpy as np
import pytest

from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Limits
from loadgen.core.simulation.step import Step
from loadgen.core.simulation.step_time import StepTime
from loadgen.sim.server.dialect import Load
from loadgen.sim.server.exchange import Answer, Asked, Output, Part, Route
from loadgen.sim.server.lateness import Lateness
from loadgen.sim.server.serving import Serving
from tests.fakes.virtual_time import FakeClock, VirtualTimeLoop, run_virtual

MS = 1_000_000
STEP_MS = 10


class Notes:
    """A Statistics that keeps everything."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.steps: list[tuple[Step, list[tuple[int, Part]], Load]] = []
        self.ended: list[tuple[int, str]] = []

    def received(self, answer: Answer) -> None:
        """Keeps the key."""
        self.taken.append(answer.key)

    def stepped(self, step: Step, parts: Sequence[tuple[Answer, Part]], load: Load) -> None:
        """Keeps the step."""
        self.steps.append((step, [(answer.key, part) for answer, part in parts], load))

    def finished(self, answer: Answer, reason: str) -> None:
        """Keeps the reason."""
        self.ended.append((answer.key, reason))


class Client:
    """A receiver that notes when it was given what, on the clock."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._ready: list[Part] = []
        self.got: list[tuple[float, list[Part]]] = []

    def prepare(self, answer: Answer, part: Part) -> bool:
        """Keeps it until delivery."""
        self._ready.append(part)
        return True

    def deliver(self) -> None:
        """What was prepared is here."""
        self.got.append((self._clock.now_ns() / MS, self._ready))
        self._ready = []


class SlowToReach(Client):
    """A receiver to whom each delivery takes some time."""

    def __init__(self, clock: FakeClock, delivery_s: float) -> None:
        super().__init__(clock)
        self._delivery_s = delivery_s

    def deliver(self) -> None:
        """What was prepared leaves now, and the next one's turn comes later."""
        super().deliver()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.lose(self._delivery_s)


class Server:
    """Serving with an engine of a fixed step time, run as a task beside the test."""

    def __init__(self, *, speed: float = 1.0, kv_blocks: int = 1000) -> None:
        self.clock, self.notes, self.warnings = FakeClock(), Notes(), list[str]()
        self.lateness = Lateness(self.warnings.append)
        self.engine = Engine(
            target=StepTime(fixed_s=STEP_MS / 1e3, per_token_s=0.0, per_context_token_s=0.0, overhead_s=0.0),
            limits=Limits(kv_blocks=kv_blocks),
            rng=np.random.default_rng(0),
        )
        self.serving = Serving(self.engine, self.notes, self.clock, self.lateness, speed=speed)
        self._keys = iter(range(100))

    def ask(self, tokens: int, *, received_ms: float | None = None, client: Client | None = None) -> Client:
        """A request for that many tokens that came now, or then."""
        client = client or Client(self.clock)
        now_ns = self.clock.now_ns() if received_ms is None else round(received_ms * MS)
        answer = answer_of(next(self._keys), tokens, received_ns=self.serving.simulated_ns(now_ns))
        self.answers = [*getattr(self, "answers", []), answer]
        self.serving.submit(answer, (), client)
        return client

    async def until(self, ms: float) -> None:
        """Lets time pass."""
        await self.clock.sleep_until(round(ms * MS))


def answer_of(key: int, tokens: int, *, received_ns: int) -> Answer:
    """An answer of that many tokens to a prompt of four."""
    asked = Asked(route=Route.COMPLETIONS, request_id="r", model="m", prompt_ids=(1, 2, 3, 4), max_tokens=tokens)
    output = Output(ids=(7,) * tokens, texts=("w",) * tokens, logprobs=(0.0,) * tokens, finish_reason="length")
    return Answer(key=key, index=0, asked=asked, output=output, created_s=0, received_ns=received_ns)


def served(work: Callable[[Server], Awaitable[None]], **options: float) -> Server:
    """The server after the work, which ran beside it in virtual time."""

    async def both() -> Server:
        server = Server(**options)
        running = asyncio.create_task(server.serving.run())
        await work(server)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return server

    return run_virtual(both())


def test_each_step_is_given_out_at_its_end():
    """The first step starts when the request comes, the others where one ended; every end is met to the instant."""

    async def work(server: Server) -> None:
        await server.until(3)
        client = server.ask(3)
        await server.until(50)
        assert client.got == [(13, [Part(0, 1, False)]), (23, [Part(1, 2, False)]), (33, [Part(2, 3, True)])]

    server = served(work)
    assert [(step.start_ns // MS, step.end_ns // MS) for step, _, _ in server.notes.steps] == [
        (3, 13),
        (13, 23),
        (23, 33),
    ]
    assert (server.notes.taken, server.notes.ended) == ([0], [(0, "length")])
    (answer,) = server.answers
    assert (answer.scheduled_ns, answer.first_ns, answer.last_ns) == (3 * MS, 13 * MS, 33 * MS)
    report = server.lateness.report()
    assert (report.emissions, report.late, report.missed, report.max_s) == (3, 0, 0, 0.0)


def test_a_request_takes_part_from_the_first_step_after_its_arrival():
    """Who comes while a step lasts waits for its end; requests of one step are given out together, in order."""

    async def work(server: Server) -> None:
        first = server.ask(4)
        await server.until(5)
        second = server.ask(2)
        await server.until(60)
        assert [at for at, _ in first.got] == [10, 20, 30, 40]
        assert [at for at, _ in second.got] == [20, 30]

    server = served(work)
    assert [[key for key, _ in parts] for _, parts, _ in server.notes.steps] == [[0], [1, 0], [0, 1], [0]]
    assert [load.running for _, _, load in server.notes.steps] == [1, 2, 1, 0]


def test_choices_with_one_receiver_are_given_out_at_once():
    """Two answers that a step adds to make one delivery."""

    async def work(server: Server) -> None:
        client = server.ask(2)
        server.ask(2, client=client)
        await server.until(40)
        assert [(at, len(parts)) for at, parts in client.got] == [(10, 2), (20, 2)]

    served(work)


def test_speed_shrinks_every_duration():
    """At five times the speed a step of 10 ms takes 2 ms of the clock, and answers keep the simulation's instants."""

    async def work(server: Server) -> None:
        await server.until(1)
        client = server.ask(2)
        await server.until(20)
        assert [at for at, _ in client.got] == [3, 5]

    server = served(work, speed=5.0)
    assert (server.answers[0].received_ns, server.answers[0].last_ns) == (5 * MS, 25 * MS)


def test_a_stall_is_caught_up_with_and_accounted():
    """A process that stood still for 100 ms gives out what was due meanwhile, late, and is then on its plan again."""

    async def work(server: Server) -> None:
        client = server.ask(20)
        await server.until(25)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        loop.lose(0.1)
        await server.until(300)
        assert [at for at, _ in client.got] == [10, 20, *[125] * 10, *range(130, 210, 10)]

    server = served(work)
    assert [step.end_ns // MS for step, _, _ in server.notes.steps] == list(range(10, 210, 10))
    report = server.lateness.report()
    assert (report.emissions, report.late, report.max_s) == (20, 10, 0.095)
    assert report.p50_s == 0.0
    assert len(server.warnings) == 1, "one word about it is enough"
    assert server.warnings[0].startswith("the server is 95 ms behind its steps")


@pytest.mark.parametrize(("delivery_s", "lead_ms"), [(20e-6, 0.1), (400e-6, 1)])
def test_a_burst_lies_around_its_steps_end(delivery_s, lead_ms):
    """Once it is known how long deliveries take, half of them come before the step's end and half after it; none comes
    more than a millisecond before it, however long they take.
    """

    async def work(server: Server) -> None:
        clients = [server.ask(300, client=SlowToReach(server.clock, delivery_s)) for _ in range(10)]
        await server.until(3000 + STEP_MS / 2)
        off_ms = [client.got[-1][0] - 3000 for client in clients]
        steps_ms = np.arange(10) * delivery_s * 1e3
        assert off_ms == pytest.approx(-lead_ms + steps_ms, abs=1e-3)
        assert clients[0].got[0][0] == pytest.approx(STEP_MS), "of the first step nothing is known yet"

    assert served(work).lateness.report().max_s == pytest.approx(9 * delivery_s, rel=1e-3)


def test_who_comes_during_a_stall_does_not_join_steps_of_before():
    """While the server catches up, a request waits for the step that starts after it came."""

    async def work(server: Server) -> None:
        server.ask(20)
        await server.until(25)
        asyncio.get_running_loop().lose(0.1)
        client = server.ask(1)
        await server.until(300)
        assert [at for at, _ in client.got] == [140], "it came at 125, the next step started at 130"

    assert served(work).lateness.report().missed == 0


def test_a_request_that_was_not_ready_in_time_is_counted():
    """One that came before the step under way started, and is handed over only now, has missed it."""

    async def work(server: Server) -> None:
        server.ask(5)
        await server.until(15)
        server.ask(1, received_ms=8)
        server.ask(1, received_ms=12)
        await server.until(60)

    assert served(work).lateness.report().missed == 1


def test_a_client_that_leaves_frees_memory_and_disturbs_nobody():
    """The step under way lasts as long as it would; what it gave the client who left is not counted."""

    async def work(server: Server) -> None:
        gone, stays = server.ask(10), server.ask(3)
        await server.until(15)
        server.serving.cancel(server.answers[0])
        server.serving.cancel(server.answers[0])
        assert server.engine.running == 1
        await server.until(60)
        assert [at for at, _ in stays.got] == [10, 20, 30]
        assert [at for at, _ in gone.got] == [10, 20], "what was prepared goes to a receiver that knows it is alone"

    server = served(work)
    assert [[key for key, _ in parts] for _, parts, _ in server.notes.steps] == [[0, 1], [1], [1]]
    assert server.notes.ended == [(0, "abort"), (1, "length")]
    assert (server.engine.running, server.engine.kv_used_ratio) == (0, 0.0)


def test_a_client_that_leaves_before_its_first_step_never_gets_one():
    """A request that still waits for the step to end is dropped; one whose last token was on its way is as well."""

    async def work(server: Server) -> None:
        server.ask(2)
        await server.until(15)
        late = server.ask(5)
        server.serving.cancel(server.answers[1])
        server.serving.cancel(server.answers[0])
        await server.until(60)
        assert late.got == []

    server = served(work)
    assert server.notes.ended == [(1, "abort"), (0, "abort")]
    assert len(server.notes.steps) == 2
    assert server.notes.steps[-1][2] == Load(running=0, waiting=0, kv_used_ratio=0.0)


def test_preemptions_are_told_to_the_answer():
    """An answer that lost its memory and got it back knows so; its start stays the first one."""

    async def work(server: Server) -> None:
        for _ in range(2):
            server.ask(40)
        await server.until(1000)

    server = served(work, kv_blocks=4)
    assert [answer.preemptions for answer in server.answers] == [0, 1]
    assert [answer.scheduled_ns for answer in server.answers] == [0, 0]
    assert all(answer.finished for answer in server.answers)


def test_the_prefix_cache_is_emptied_only_when_nobody_uses_it():
    """As engines do it, a reset fails while requests hold memory."""

    async def work(server: Server) -> None:
        server.ask(2)
        await server.until(5)
        assert not server.serving.forget_prefixes()
        await server.until(40)
        assert server.serving.forget_prefixes()

    served(work)


@pytest.mark.parametrize(("work_ms", "free_ms"), [(3, 12), (9, 20), (50, 20)])
def test_work_waits_where_it_would_delay_a_burst(work_ms, free_ms):
    """What fits before the step's end may be done now; what does not is done right after it, however long it is."""

    async def work(server: Server) -> None:
        await server.serving.spare(work_ms * MS)
        assert server.clock.now_ns() == 0, "an idle server has time"
        server.ask(3)
        await server.until(12)
        await server.serving.spare(work_ms * MS)
        assert server.clock.now_ns() == free_ms * MS

    served(work)
