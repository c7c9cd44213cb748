"""Progress of reading or writing a large data file, on stderr, for those that take more than a few seconds."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

from loadgen.cli.writing import put

_QUIET_S = 2.0
_TERMINAL_STEP_S = 0.2
_LINE_STEP_S = 10.0


class Reading:
    """Called with what is done and what there is. On a terminal one line is redrawn, elsewhere a line is printed."""

    def __init__(
        self, title: str, *, stream: TextIO | None = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._title, self._now_s = title, now_s
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._due_s = now_s() + _QUIET_S
        self._drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Shows the share that is done, when it is time to."""
        if self._now_s() < self._due_s:
            return
        self._due_s = self._now_s() + (_TERMINAL_STEP_S if self._is_terminal else _LINE_STEP_S)
        text = f"{self._title}: {done / total:.0%}" if total else self._title
        put(self._stream, f"\r{text}" if self._is_terminal else f"{text}\n")
        self._drawn = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn and self._is_terminal:
            put(self._stream, "\r\033[K")
