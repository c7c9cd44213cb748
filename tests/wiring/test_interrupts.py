"""Signals of a command: who is told, when, and that none is lost between two of its parts."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from loadgen.engine.live import LiveCounts
from loadgen.options.load import RunOptions, SweepOptions
from loadgen.wiring.execute import Display
from loadgen.wiring.interrupts import Interrupted, interruptible, interrupts, signals
from loadgen.wiring.run import run_once
from loadgen.wiring.sweep import sweep_once
from tests.cli.commands import ChatServer

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture(autouse=True)
def unheard() -> Iterator[list[int]]:
    """Signals that nobody took, which would end the process; none are expected."""
    taken: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, lambda number, _: taken.append(number)) for each in numbers]
    yield taken
    for each, handler in zip(numbers, before, strict=True):
        signal.signal(each, handler)
    assert taken == []


def strike(number: int) -> None:
    """A signal to this process, unless nobody takes it: it would end the tests."""
    assert signal.getsignal(number) not in (signal.SIG_DFL, signal.default_int_handler), "nobody takes it"
    os.kill(os.getpid(), number)


async def send(number: int) -> None:
    """A signal, and a moment in which the loop can take it."""
    strike(number)
    await asyncio.sleep(0.01)


@BOTH
def test_once_in_order_a_second_time_at_once(number: int) -> None:
    """Of blocks within each other the innermost is told; the outer one again once that has left."""
    told: list[str] = []

    async def work() -> None:
        with interrupts(lambda: told.append("outer"), lambda: told.append("outer again")):
            with interrupts(lambda: told.append("inner"), lambda: told.append("inner again")):
                await send(number)
                await send(number)
            await send(number)

    asyncio.run(work())
    assert told == ["inner", "inner again", "outer"]


@BOTH
def test_a_signal_between_two_parts_is_told_to_the_next(number: int) -> None:
    """At the beginning of the block that listens, and without even beginning what can be interrupted."""
    told: list[str] = []

    async def never() -> None:
        told.append("begun")

    async def command() -> None:
        with signals() as heard:
            assert not heard.asked
            await send(number)
            assert heard.asked
            with interrupts(lambda: told.append("first"), lambda: told.append("again")):
                assert told == ["first"]
                await send(number)
            with pytest.raises(Interrupted):
                await interruptible(never())

    asyncio.run(command())
    assert told == ["first", "again"]


def test_what_one_command_heard_is_not_told_to_the_next() -> None:
    """Two commands in one process, one after the other and at the same time, have their signals for themselves."""

    async def interrupted() -> bool:
        with signals() as heard:
            await send(signal.SIGINT)
            return heard.asked

    async def left_alone() -> bool:
        with signals() as heard:
            return await interruptible(asyncio.sleep(0, heard.asked))

    async def both() -> list[bool]:
        return [await interrupted(), await left_alone()]

    assert asyncio.run(both()) == [True, False]


def test_a_terminal_that_is_closed_says_so_twice_and_means_it_once() -> None:
    """Shell and system both send SIGHUP: it stops in order, and only an interrupt after it is impatient."""
    told: list[str] = []

    async def work() -> None:
        with interrupts(lambda: told.append("first"), lambda: told.append("again")):
            await send(signal.SIGHUP)
            await send(signal.SIGHUP)
            assert told == ["first"]
            await send(signal.SIGTERM)

    asyncio.run(work())
    assert told == ["first", "again"]


def test_a_terminal_that_is_to_be_outlived_is(unheard: list[int]) -> None:
    """Under nohup the signal is ignored from the start, and stays so."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def asked() -> bool:
        with signals() as heard:
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.01)
            return heard.asked

    assert not asyncio.run(asked())
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@BOTH
def test_what_can_be_interrupted_is_cancelled_and_waited_for(number: int) -> None:
    """Its own clean-up runs to the end before the caller goes on; a cancellation from elsewhere stays one."""
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    async def command() -> None:
        asyncio.get_running_loop().call_later(0.01, strike, number)
        with pytest.raises(Interrupted):
            await interruptible(work())
        other = asyncio.create_task(interruptible(work()))
        await asyncio.sleep(0.01)
        other.cancel()
        with pytest.raises(asyncio.CancelledError):
            await other

    asyncio.run(command())
    assert ended == ["cleaned up"] * 2


def at_the_end(number: int, struck: list[int]) -> Display:
    """A display that sends a signal right after its run has ended, while the result is being made, and notes it."""

    def happens() -> None:
        strike(number)
        struck.append(number)

    def display(live: LiveCounts, title: str, duration_s: float | None) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def shown() -> AsyncIterator[None]:
            yield
            asyncio.get_running_loop().call_soon(happens)

        return shown()

    return display


@BOTH
def test_a_signal_while_a_level_is_saved_ends_the_ladder_after_it(number: int, tmp_path: Path) -> None:
    """The level is whole and in `sweep.json`, the next is not begun, and the ladder says that it was interrupted."""
    struck: list[int] = []
    with ChatServer() as server:
        options = SweepOptions(
            url=server.url, concurrency=[1, 2], num_requests=2, warmup_requests=0, settle=0.0, out=tmp_path
        )
        found = asyncio.run(sweep_once(options, display=at_the_end(number, struck)))
    assert struck == [number]
    assert found.interrupted
    assert [level.level for level in found.sweep.levels] == [1]
    assert found.sweep.levels[0].summary.requests.completed == 2
    assert not found.sweep.levels[0].summary.interrupted
    assert [path.name for path in (found.path / "levels").iterdir()] == ["001-1"]
    assert (found.path / "sweep.json").is_file()
    assert (found.path / "levels" / "001-1" / "summary.json").is_file()


@BOTH
def test_a_signal_while_a_run_is_saved_loses_nothing(number: int, tmp_path: Path) -> None:
    """It was whole when the signal came: its summary is there and does not speak of an interruption."""
    struck: list[int] = []
    with ChatServer() as server:
        options = RunOptions(url=server.url, num_requests=2, out=tmp_path)
        found = asyncio.run(run_once(options, display=at_the_end(number, struck)))
    assert struck == [number]
    assert found.folder.load_summary().requests.completed == 2
    assert not found.analysis.summary.interrupted


@BOTH
def test_a_signal_before_the_first_request_is_told_to_the_run(number: int, tmp_path: Path) -> None:
    """It came while the run was being prepared: nothing is sent, and the folder says that somebody asked to stop."""
    with ChatServer() as server:
        options = RunOptions(url=server.url, num_requests=50, out=tmp_path)

        def display(live: LiveCounts, title: str, duration_s: float | None) -> AbstractAsyncContextManager[object]:
            @asynccontextmanager
            async def shown() -> AsyncIterator[None]:
                await send(number)
                yield

            return shown()

        found = asyncio.run(run_once(options, display=display))
        assert server.bodies == []
    assert found.end.interrupted
    assert found.analysis.summary.interrupted
