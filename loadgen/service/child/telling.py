"""Lines of JSON for the service. When nobody reads them any more, the run goes on."""

import os
import threading
from typing import Any

from loadgen.adapters.store.files import Scrubber


class Teller:
    """Writes whole lines to a descriptor, from any thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor
        self._scrubber = Scrubber()
        self._lock = threading.Lock()

    def tell(self, kind: str, **data: Any) -> None:
        """One line."""
        line = self._scrubber.encode({"kind": kind, **data}) + b"\n"
        with self._lock:
            try:
                while line and self._descriptor is not None:
                    line = line[os.write(self._descriptor, line) :]
            except OSError:
                self._descriptor = None
