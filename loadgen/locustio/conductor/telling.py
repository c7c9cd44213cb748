"""Lines of JSON to whoever started this process."""

import os
import sys
from contextlib import suppress
from typing import Any, Protocol

import msgspec


class Tell(Protocol):
    """Says what happens."""

    def __call__(self, event: str, **values: Any) -> None:
        """An event with its values, which JSON can hold."""
        ...


class Teller:
    """Writes events to what was standard output, which from then on goes to standard error for everyone else.

    When nobody reads any more what is measured is still to be saved: then nothing is said.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._file = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def __call__(self, event: str, **values: Any) -> None:
        """One line, at once."""
        rest = memoryview(msgspec.json.encode({"event": event, **values}) + b"\n")
        with suppress(BrokenPipeError):
            while rest:
                rest = rest[self._file.write(rest) :]
