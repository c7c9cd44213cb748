"""How often an address may be wrong about a key before it has to wait."""

import threading
from collections import OrderedDict

from loadgen.service.clock import Clock

MOST, WINDOW_S = 10, 60.0
_MOST_ADDRESSES = 10_000


class Failures:
    """Counts by address, for as long as the service runs. What it keeps is bounded."""

    def __init__(self, clock: Clock, *, most: int = MOST, window_s: float = WINDOW_S) -> None:
        self._clock, self._most, self._window_s = clock, most, window_s
        self._seen: OrderedDict[str, list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, address: str) -> float:
        """How long that address has to wait; 0 when it may try."""
        with self._lock:
            recent = self._recent(address)
            return 0.0 if len(recent) < self._most else recent[0] + self._window_s - self._clock.monotonic_s()

    def note(self, address: str) -> None:
        """It was wrong."""
        with self._lock:
            recent = self._recent(address)[-self._most + 1 :]
            self._seen[address] = [*recent, self._clock.monotonic_s()]
            self._seen.move_to_end(address)
            while len(self._seen) > _MOST_ADDRESSES:
                self._seen.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        since_s = self._clock.monotonic_s() - self._window_s
        return [at_s for at_s in self._seen.get(address, ()) if at_s > since_s]
