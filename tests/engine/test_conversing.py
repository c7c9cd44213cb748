"""Conversations in virtual time: each turn after the answer before it."""

import pytest

from loadgen.core.record import FailureKind, Outcome
from loadgen.core.request import Conversation, Messages, Text, Turn
from loadgen.core.run import Load, LoadMode
from tests.engine.bench import Bench, closed
from tests.fakes.scripted_transport import Script, chat_stream


def test_a_conversation_waits_for_each_answer_and_carries_it_on() -> None:
    """The second turn leaves a think time after the first answer and holds that answer as the assistant's message."""
    conversation = Conversation(
        session_id="s",
        turns=(
            Turn(prompt=Text(text="one")),
            Turn(prompt=Text(text="two"), continues_answers=True, think_s=2.0),
        ),
    )
    bench = Bench(closed(1), conversations=iter([conversation]), answer=lambda n: chat_stream(0.5, 1.0, text="answer "))
    bench.execute()
    (first_ns, _), (second_ns, body) = bench.transport.sent
    assert second_ns - first_ns == pytest.approx(3e9, abs=60e6)
    assert b'"role":"assistant","content":"answer answer "' in body.replace(b": ", b":").replace(b", ", b",")
    assert [(record.session_id, record.turn) for record in bench.sink.records] == [("s", 0), ("s", 1)]


def test_turns_after_a_lost_answer_are_dropped_not_forgotten() -> None:
    """When the answer that a turn continues from never came, that turn is a dropped record."""
    conversation = Conversation(
        turns=(
            Turn(prompt=Messages(messages=({"role": "user", "content": "one"},))),
            Turn(prompt=Text(text="two"), continues_answers=True),
        )
    )
    bench = Bench(closed(1), conversations=iter([conversation]), answer=lambda n: Script([], kind=FailureKind.CONNECT))
    end = bench.execute()
    assert [record.outcome for record in bench.sink.records] == [Outcome.FAILED, Outcome.DROPPED]
    assert end.requests == 2


def test_turns_that_fell_due_behind_a_slow_answer_are_dropped_at_the_end() -> None:
    """A replayed session whose first answer outlasts the run: its second turn was due inside, its third was not."""
    turns = tuple(Turn(prompt=Text(text=str(at)), offset_ns=at * 10**9) for at in (0, 2, 9))
    session = Conversation(turns=turns, session_id="s")
    load = Load(mode=LoadMode.REPLAY, speed=1.0, duration_s=4.0)
    for grace_s, first in ((20.0, Outcome.COMPLETED), (1.0, Outcome.CANCELLED)):
        bench = Bench(load, conversations=iter([session]), answer=lambda n: chat_stream(0.1, 8.0), grace_s=grace_s)
        bench.execute()
        assert [(record.turn, record.outcome) for record in sorted(bench.sink.records, key=lambda r: r.seq)] == [
            (0, first),
            (1, Outcome.DROPPED),
        ]


def test_no_turn_is_sent_after_the_end() -> None:
    """Conversations of ten turns of 0.3 s without think time, for 1 s: the next turn after the end is not sent."""
    talk = [Conversation(turns=tuple(Turn(prompt=Text(text=str(n))) for n in range(10))) for _ in range(2)]
    bench = Bench(closed(2, duration_s=1.0), conversations=iter(talk), answer=lambda n: chat_stream(0.1, 0.3))
    end = bench.execute()
    assert end.window is not None
    assert max(at_ns for at_ns, _ in bench.transport.sent) < end.window.end_ns
    assert len(bench.sink.records) == len(bench.transport.sent) == 8
