"""SIGINT and SIGTERM while something is under way: once in order, a second time at once."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")

_LISTENING: list[Callable[[], None]] = []
"""Who is told of a signal: the last; the others again when it has left."""


class Interrupted(Exception):  # noqa: N818 (it is no error: somebody asked)
    """Somebody asked to stop."""


async def interruptible(work: Coroutine[Any, Any, Result]) -> Result:
    """What the work comes to. A signal cancels it; raises Interrupted then, once it has ended."""
    task = asyncio.create_task(work)
    asked = False

    def cancel() -> None:
        nonlocal asked
        asked = True
        task.cancel()

    with interrupts(cancel, cancel):
        try:
            return await task
        except asyncio.CancelledError:
            if asked:
                raise Interrupted from None
            raise


@contextmanager
def interrupts(first: Callable[[], None], again: Callable[[], None]) -> Iterator[None]:
    """Calls `first` at the first signal and `again` at each further one, until the block is left.

    Of blocks within each other the innermost is told.
    """
    loop = asyncio.get_running_loop()
    seen = 0

    def interrupt() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            first()
        else:
            again()

    handled = [number for number in (signal.SIGINT, signal.SIGTERM) if _handle(loop, number, interrupt)]
    if handled:
        _LISTENING.append(interrupt)
    try:
        yield
    finally:
        if handled:
            _LISTENING.pop()
        for number in handled:
            if not _LISTENING or not _handle(loop, number, _LISTENING[-1]):
                loop.remove_signal_handler(number)


def _handle(loop: asyncio.AbstractEventLoop, number: int, tell: Callable[[], None]) -> bool:
    """Whether the loop takes that signal: in another thread than the main one whoever owns it decides when to stop."""
    try:
        loop.add_signal_handler(number, tell)
    except (ValueError, NotImplementedError, RuntimeError):
        return False
    return True
