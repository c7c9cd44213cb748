"""Wakes whoever waits for news of a run in this process; news from another service is found by looking again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str | None], None]


class Hub:
    """Counts news, and tells of each at once. News without a run is for all."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._listeners: set[Listener] = set()
        self._count = 0

    def tell(self, run_id: str | None = None) -> None:
        """There is news."""
        with self._changed:
            self._count += 1
            listeners = list(self._listeners)
            self._changed.notify_all()
        for listener in listeners:
            listener(run_id)

    @property
    def count(self) -> int:
        """How much news there was."""
        return self._count

    def wait(self, seen: int, limit_s: float) -> None:
        """Until the count is another than `seen`, or for that time."""
        with self._changed:
            self._changed.wait_for(lambda: self._count != seen, limit_s)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Calls the listener with each news until the block is left, in whatever thread tells it."""
        with self._changed:
            self._listeners.add(listener)
        try:
            yield
        finally:
            with self._changed:
                self._listeners.discard(listener)
