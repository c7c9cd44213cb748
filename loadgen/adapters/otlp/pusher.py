"""Pushes what a monitor has, every so often and once more at the end, in a thread of its own.

Totals only grow, so a push that failed needs no repetition: the next one says all that it would have said. Nothing is
kept for it.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from loadgen.adapters.otlp.families import Family


class Source(Protocol):
    """What is pushed."""

    def families(self) -> Sequence[Family]:
        """Everything as it is now."""
        ...


class Destination(Protocol):
    """Where it is pushed to."""

    def send(self, families: Sequence[Family]) -> str | None:
        """Why it failed, or None."""
        ...

    def close(self) -> None:
        """Gives up what is under way."""
        ...


class Pusher:
    """Pushes from now on until it is closed. A collector's fault is told of once, and counted.

    For the last push the end waits no longer than `flush_s`.
    """

    def __init__(
        self,
        source: Source,
        destination: Destination,
        *,
        interval_s: float,
        url: str,
        tell: Callable[[str], None],
        flush_s: float = 5.0,
    ) -> None:
        self._source, self._destination, self._interval_s = source, destination, interval_s
        self._url, self._tell, self._flush_s = url, tell, flush_s
        self._closing = threading.Event()
        self._pushed = self._failed = 0
        self._thread = threading.Thread(target=self._run, name="metrics push", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Pushes the last state."""
        self._closing.set()
        self._thread.join(self._flush_s)
        late = self._thread.is_alive()
        failed, pushed = self._failed + late, self._pushed  # before an end makes a fault of what is under way
        self._destination.close()
        if failed:
            last = "; the last state did not get there" if late else ""
            self._tell(f"metrics: {failed} of {pushed} pushes to {self._url} failed{last}")

    def _run(self) -> None:
        due_s = time.monotonic()
        while not self._closing.wait(max(0.0, due_s - time.monotonic())):
            self._push()
            due_s = max(due_s + self._interval_s, time.monotonic())
        self._push()

    def _push(self) -> None:
        self._pushed += 1
        fault = self._destination.send(self._source.families())
        if fault is None:
            return
        self._failed += 1
        if self._failed == 1:
            self._tell(f"metrics do not reach {self._url}: {fault}; the measurement goes on without")
