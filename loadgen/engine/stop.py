"""How a run ends before its plan does: once in order, a second time at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from loadgen.engine.ports import Clock


class Stop:
    """The run's end: whether it was asked for, why, and when; and the waits that it cuts short.

    `reason` and `at_ns` (run axis) are those of the first call. `interrupted` says that somebody asked, rather than the
    plan's own deadline.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: set[asyncio.Task[Any]] = set()
        self.asked = asyncio.Event()
        self.aborted = asyncio.Event()
        self.reason: str | None = None
        self.at_ns: int | None = None
        self.interrupted = False

    def ask(self, reason: str) -> None:
        """No further request is to start; those in flight may end."""
        if self.reason is not None:
            return
        self.reason = reason
        self.interrupted = reason == "interrupt"
        self.at_ns = self._clock.now_ns()
        self.asked.set()
        for task in self._waiting:
            task.cancel()

    def abort(self) -> None:
        """Those in flight are not waited for either."""
        self.ask("interrupt")
        self.interrupted = True
        self.aborted.set()

    async def pause_until(self, due_ns: int) -> bool:
        """Waits for an instant; False when the stop came first."""
        return await self.pause(self._clock.sleep_until(due_ns))

    async def pause(self, wait: Coroutine[Any, Any, object]) -> bool:
        """Waits for something other than the server, which a stop cuts short; False when it did."""
        if self.asked.is_set():
            wait.close()
            return False
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            await wait
        except asyncio.CancelledError:
            if not self.asked.is_set():
                raise
            task.uncancel()
            return False
        finally:
            self._waiting.discard(task)
        return True
