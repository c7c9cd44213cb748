"""What a monitor needs while it is watched, however it is read: what waits is counted, and readers hold up nobody.

Readers are threads. What they take from the event loop that measures is Python's lock; so the interpreter is told to
hand it over sooner meanwhile: a reader then delays the loop by a fraction of a millisecond at a time, not by five.
"""

import sys
import threading
from collections.abc import Callable

_HAND_OVER_S = 0.0005


class Upkeep:
    """From now on until it is closed. `take_in` is called every so often: what waits to be counted stays little."""

    def __init__(self, take_in: Callable[[], None], *, every_s: float = 1.0) -> None:
        self._take_in_now, self._every_s = take_in, every_s
        self._closing = threading.Event()
        self._switch_interval_s = sys.getswitchinterval()
        sys.setswitchinterval(_HAND_OVER_S)
        self._thread = threading.Thread(target=self._take_in, name="metrics totals", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and puts the interpreter back as it was."""
        self._closing.set()
        self._thread.join()
        sys.setswitchinterval(self._switch_interval_s)

    def _take_in(self) -> None:
        while not self._closing.wait(self._every_s):
            self._take_in_now()
