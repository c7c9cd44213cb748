"""Waiting for a server to become ready, which may take many minutes."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from loadgen.core.units import duration_text

Ask = Callable[[str], Awaitable[str | None]]
"""Asks the server at a URL once whether it is ready: None when it is, else what is missing, in words."""

Progress = Callable[[float, str | None], None]
"""Gets the seconds waited so far and the last line of the server's log."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SLOWDOWN = 0.05, 1.0, 1.3


class NotReadyError(Exception):
    """It did not become ready: the message says how long that took and what was missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How readiness is asked for, how long it may take, and who is told meanwhile."""

    ask: Ask
    timeout_s: float
    progress: Progress = lambda _waited_s, _last_line: None

    async def until_ready(
        self, url: str, *, ended: asyncio.Event, last_line: Callable[[], str | None] = lambda: None
    ) -> bool:
        """True once it is ready, False as soon as `ended` is set. Raises NotReadyError after the time allowed."""
        began_s, pause_s = time.monotonic(), _FIRST_PAUSE_S
        while not ended.is_set():
            missing = await self.ask(url)
            waited_s = time.monotonic() - began_s
            if missing is None:
                return not ended.is_set()
            if waited_s >= self.timeout_s:
                raise NotReadyError(f"not ready after {duration_text(waited_s)}: {missing}")
            self.progress(waited_s, last_line())
            try:
                async with asyncio.timeout(min(pause_s, self.timeout_s - waited_s)):
                    await ended.wait()
            except TimeoutError:
                pause_s = min(pause_s * _SLOWDOWN, _LONGEST_PAUSE_S)
        return False
