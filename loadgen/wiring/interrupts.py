"""SIGINT, SIGTERM and SIGHUP while something is under way: once in order, a second time at once."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Result = TypeVar("Result")

_ASKING = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):  # noqa: N818 (it is no error: somebody asked)
    """Somebody asked to stop."""


class Signals:
    """The signals of one command, and who is told of them: of blocks within each other the innermost."""

    def __init__(self) -> None:
        self._count = 0
        self._listening: list[Callable[[], None]] = []

    @property
    def asked(self) -> bool:
        """Whether somebody asked to stop."""
        return self._count > 0

    def hang_up(self) -> None:
        """Takes the end of a terminal, of which shell and system both tell: it says to stop, and never impatiently."""
        if not self.asked:
            self.hear()

    def hear(self) -> None:
        """Takes a signal. One that nobody listens to waits for the next who does."""
        self._count += 1
        if self._listening:
            self._listening[-1]()

    @contextmanager
    def told(self, first: Callable[[], None], again: Callable[[], None]) -> Iterator[None]:
        """Calls `first` at the first signal, also at one from before, and `again` at each further one."""
        seen = False

        def interrupt() -> None:
            nonlocal seen
            call, seen = again if seen else first, True
            call()

        self._listening.append(interrupt)
        try:
            if self.asked:
                interrupt()
            yield
        finally:
            self._listening.pop()


_OF_COMMAND: ContextVar[Signals | None] = ContextVar("the signals of the command under way", default=None)


@contextmanager
def signals() -> Iterator[Signals]:
    """Takes signals until the block is left, so that none ends the process between two of its parts.

    For a command of several parts. What it waits for in `interrupts` and `interruptible` is told of them.
    """
    loop, heard = asyncio.get_running_loop(), Signals()
    handled = [number for number in _ASKING if _handle(loop, number, heard.hear)]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _handle(loop, signal.SIGHUP, heard.hang_up):
        handled.append(signal.SIGHUP)  # ignored under nohup, and it stays so
    before = _OF_COMMAND.set(heard)
    try:
        yield heard
    finally:
        _OF_COMMAND.reset(before)
        for number in handled:
            loop.remove_signal_handler(number)


@contextmanager
def interrupts(first: Callable[[], None], again: Callable[[], None]) -> Iterator[None]:
    """Calls `first` at the first signal and `again` at each further one, until the block is left.

    Within the `signals` of a command a signal from before the block is told at its beginning.
    """
    heard = _OF_COMMAND.get()
    if heard is None:
        with signals() as own, own.told(first, again):
            yield
        return
    with heard.told(first, again):
        yield


async def interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """What the work comes to. A signal cancels it; raises Interrupted then, once it has ended."""
    task: asyncio.Task[Result] | None = None
    asked = False

    def cancel() -> None:
        nonlocal asked
        asked = True
        if task is not None:
            task.cancel()

    with interrupts(cancel, cancel):
        if asked:
            work.close()
            raise Interrupted
        task = asyncio.create_task(work)
        try:
            return await task
        except asyncio.CancelledError:
            if asked:
                raise Interrupted from None
            raise


def _handle(loop: asyncio.AbstractEventLoop, number: int, tell: Callable[[], None]) -> bool:
    """Whether the loop takes that signal: in another thread than the main one whoever owns it decides when to stop."""
    try:
        loop.add_signal_handler(number, tell)
    except (ValueError, NotImplementedError, RuntimeError):
        return False
    return True
