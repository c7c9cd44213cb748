"""SIGINT and SIGTERM while something is under way: once in order, a second time at once."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
