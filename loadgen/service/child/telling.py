"""Lines of JSON for the service. Telling never waits: a thread writes, so that a service that is slow to read holds up
no measurement, and when nobody reads any more, the run goes on."""

import os
import queue
import threading
from typing import Any

import msgspec

from loadgen.adapters.store.files import Scrubber
from loadgen.service.jobs.order import OUTCOME_TOLD, Outcome

_PASSING = frozenset({"progress", "metrics"})
"""What a later line of the same kind makes up for."""

_MOST_WAITING = 50
_CLOSING_S = 10.0


class Teller:
    """Writes whole lines to a descriptor, in order, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._scrubber = Scrubber()
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="telling", daemon=True)
        self._writer.start()

    def tell(self, kind: str, **data: Any) -> None:
        """One line; one that passes is left out while many wait."""
        if kind not in _PASSING or self._waiting.qsize() < _MOST_WAITING:
            self._waiting.put(self._scrubber.encode({"kind": kind, **data}) + b"\n")

    def tell_outcome(self, outcome: Outcome) -> None:
        """What its file would have said, where that cannot be written."""
        self.tell(OUTCOME_TOLD, **msgspec.to_builtins(outcome))

    def close(self) -> None:
        """Returns when all is written, or when nobody has read for a while."""
        self._waiting.put(None)
        self._writer.join(_CLOSING_S)

    def _write(self) -> None:
        heard = True
        while (line := self._waiting.get()) is not None:
            try:
                while heard and line:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:
                heard = False
