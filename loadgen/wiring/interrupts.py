"""SIGINT and SIGTERM while something is under way: once in order, a second time at once."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")


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
    """Calls `first` at the first signal and `again` at each further one, until the block is left."""
    loop = asyncio.get_running_loop()
    seen = 0

    def interrupt() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            first()
        else:
            again()

    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, interrupt)
            handled.append(number)
        except (ValueError, NotImplementedError, RuntimeError):
            pass  # not the main thread: whoever owns it decides when to stop
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
