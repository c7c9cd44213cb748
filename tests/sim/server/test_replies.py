"""Streams: what is sent when, above all to clients that read slowly, against an exchange that keeps what it gets."""

from collections.abc import Callable

import numpy as np
import pytest

from loadgen.core.simulation.engine import Engine
from loadgen.core.simulation.job import Limits
from loadgen.core.simulation.step_time import StepTime
from loadgen.sim.http import LAST_CHUNK, chunk
from loadgen.sim.server.exchange import Answer, Asked, Output, Part, Route
from loadgen.sim.server.faults import Fault, FaultKind
from loadgen.sim.server.lateness import Lateness
from loadgen.sim.server.replies import StreamReply
from loadgen.sim.server.serving import Serving
from loadgen.sim.server.vllm import VllmDialect
from tests.fakes.virtual_time import FakeClock
from tests.sim.server.driven import facts

DIALECT = VllmDialect(facts(None))


class SlowExchange:
    """An exchange whose client stops reading when told to; keeps what it is given."""

    def __init__(self) -> None:
        self.paused, self.ended, self.was_reset = False, False, False
        self.sent: list[bytes] = []
        self.on_gone: Callable[[], object] = lambda: None
        self.on_writable: Callable[[], object] = lambda: None

    def begin(self, content_type: str) -> None:
        """The head does not matter here."""

    def send(self, data: bytes) -> None:
        """Keeps it."""
        self.sent.append(data)

    def end(self) -> None:
        """Notes it."""
        self.ended = True

    def reset(self) -> None:
        """Notes it."""
        self.was_reset = True


def reply_of(exchange: SlowExchange, *, interval: int = 1, fault: Fault | None = None) -> tuple[StreamReply, Answer]:
    """A stream of six tokens."""
    reply, (answer,) = replies_of(exchange, choices=1, interval=interval, fault=fault)
    return reply, answer


def replies_of(
    exchange: SlowExchange, *, choices: int, interval: int = 1, fault: Fault | None = None
) -> tuple[StreamReply, list[Answer]]:
    """A stream of some choices of six tokens each."""
    asked = Asked(
        route=Route.COMPLETIONS,
        request_id="r",
        model="m",
        prompt_ids=(1,),
        stream=True,
        max_tokens=6,
        stream_interval=interval,
    )
    output = Output(ids=tuple(range(6)), texts=tuple("abcdef"), logprobs=(0.0,) * 6, finish_reason="length")
    answers = [
        Answer(key=index, index=index, asked=asked, output=output, created_s=0, received_ns=0)
        for index in range(choices)
    ]
    step = StepTime(fixed_s=0.01, per_token_s=0.0, per_context_token_s=0.0, overhead_s=0.0)
    engine = Engine(target=step, limits=Limits(kv_blocks=100), rng=np.random.default_rng(0))
    serving = Serving(engine, DIALECT.statistics(), FakeClock(), Lateness(print))
    return StreamReply(exchange, answers, DIALECT, serving, fault), answers  # type: ignore[arg-type]


def event(answer: Answer, start: int, stop: int, *, finished: bool = False) -> bytes:
    """What a part looks like on the wire."""
    return chunk(DIALECT.part(answer, Part(start, stop, finished)))


def last(answer: Answer, start: int) -> bytes:
    """The last part, with the stream's end."""
    return chunk(DIALECT.part(answer, Part(start, 6, True)) + DIALECT.closing([answer])) + LAST_CHUNK


def step(reply: StreamReply, answer: Answer, start: int, stop: int) -> None:
    """A step from beginning to end."""
    if reply.prepare(answer, Part(start, stop, stop == 6)):
        reply.deliver()


def test_nothing_leaves_before_it_is_delivered():
    """Preparing sends nothing."""
    exchange = SlowExchange()
    reply, answer = reply_of(exchange)
    assert reply.prepare(answer, Part(0, 2, False))
    assert exchange.sent == []
    reply.deliver()
    assert exchange.sent == [event(answer, 0, 2)]


def test_choices_of_one_step_leave_together():
    """In the order in which they were prepared; a step with one of them sends that alone, and only the last ends it."""
    exchange = SlowExchange()
    reply, (first, second) = replies_of(exchange, choices=2)
    reply.prepare(first, Part(0, 1, False))
    reply.prepare(second, Part(0, 2, False))
    reply.deliver()
    step(reply, first, 1, 6)
    assert exchange.sent == [event(first, 0, 1) + event(second, 0, 2), event(first, 1, 6, finished=True)]
    step(reply, second, 2, 5)
    assert not exchange.ended
    step(reply, second, 5, 6)
    closing = chunk(DIALECT.part(second, Part(5, 6, True)) + DIALECT.closing([first, second])) + LAST_CHUNK
    assert exchange.sent[2:] == [event(second, 2, 5), closing]
    assert exchange.ended


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_fault_strikes_after_its_events(after: int):
    """That many events come, each at its time, and then the connection is reset in place of the next."""
    exchange = SlowExchange()
    reply, answer = reply_of(exchange, fault=Fault(kind=FaultKind.RESET, after_events=after))
    for token in range(after):
        step(reply, answer, token, token + 1)
        assert exchange.sent[-1] == event(answer, token, token + 1)
        assert not exchange.was_reset
    step(reply, answer, after, after + 1)
    assert b"".join(exchange.sent) == b"".join(event(answer, token, token + 1) for token in range(after))
    assert exchange.was_reset


def test_what_was_ready_when_a_client_stopped_reading_leaves_first():
    """A choice prepared before the client stopped goes out at the step's end, one prepared after that waits."""
    exchange = SlowExchange()
    reply, (first, second) = replies_of(exchange, choices=2)
    reply.prepare(first, Part(0, 1, False))
    exchange.paused = True
    reply.prepare(second, Part(0, 1, False))
    reply.deliver()
    assert exchange.sent == [event(first, 0, 1)]
    step(reply, second, 1, 3)
    exchange.paused = False
    exchange.on_writable()
    assert exchange.sent == [event(first, 0, 1), event(second, 0, 3)]


def test_steps_merge_while_a_client_does_not_read():
    """What comes meanwhile is one event when it reads again, and then each step has its own again."""
    exchange = SlowExchange()
    reply, answer = reply_of(exchange)
    step(reply, answer, 0, 1)
    exchange.paused = True
    step(reply, answer, 1, 2)
    step(reply, answer, 2, 4)
    assert exchange.sent == [event(answer, 0, 1)]
    exchange.paused = False
    exchange.on_writable()
    assert exchange.sent == [event(answer, 0, 1), event(answer, 1, 4)]
    step(reply, answer, 4, 5)
    step(reply, answer, 5, 6)
    assert exchange.sent[2:] == [event(answer, 4, 5), last(answer, 5)]
    assert exchange.ended


def test_a_stream_that_ended_unread_ends_when_it_is_read():
    """The last event waits, too, and ends the stream when it goes."""
    exchange = SlowExchange()
    reply, answer = reply_of(exchange)
    exchange.paused = True
    step(reply, answer, 0, 3)
    step(reply, answer, 3, 6)
    assert (exchange.sent, exchange.ended) == ([], False)
    exchange.paused = False
    exchange.on_writable()
    assert (exchange.sent, exchange.ended) == ([last(answer, 0)], True)


def test_who_reads_again_gets_nothing_before_its_time():
    """A step under way while a client begins to read again is given out at its end."""
    exchange = SlowExchange()
    reply, answer = reply_of(exchange)
    exchange.paused = True
    step(reply, answer, 0, 1)
    reply.prepare(answer, Part(1, 2, False))
    exchange.paused = False
    exchange.on_writable()
    assert exchange.sent == [event(answer, 0, 1)]
    reply.deliver()
    assert exchange.sent == [event(answer, 0, 1), event(answer, 1, 2)]


def test_an_interval_holds_back_all_but_the_first_and_the_last():
    """Three tokens at least between them; a step that gives nothing has nothing to deliver."""
    exchange = SlowExchange()
    reply, answer = reply_of(exchange, interval=3)
    assert [reply.prepare(answer, Part(token, token + 1, token == 5)) for token in range(6)] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]
    reply.deliver()
    assert exchange.sent == [event(answer, 0, 1) + event(answer, 1, 4) + last(answer, 4)]
