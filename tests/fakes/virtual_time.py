"""Virtual time: an event loop that jumps to the next timer instead of waiting, and a clock on its axis."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.SelectSelector):
    """Returns at once and moves its loop's time forward by what the loop wanted to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("the loop would wait for ever: nothing is scheduled")
            self.now_s += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual; nothing in it may depend on real waiting."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def lose(self, s: float) -> None:
        """Lets that time pass while nothing runs, as a stalled process does."""
        self._jumping.now_s += s


class FakeClock:
    """The Clock port on a loop's own time."""

    origin_unix_ns = 1_700_000_000_000_000_000

    def now_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    async def sleep_until(self, due_ns: int) -> None:
        loop = asyncio.get_running_loop()
        if due_ns > self.now_ns():
            reached = loop.create_future()
            loop.call_at(due_ns / 1e9, reached.set_result, None)
            await reached


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in virtual time."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
