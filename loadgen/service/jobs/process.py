"""The process of a run as the service sees it: started, given its order, told to stop, found ended."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from loadgen.adapters.launch.orphans import Identity, identity_of
from loadgen.adapters.profiles.files import DIRECTORY_VARIABLE
from loadgen.core.errors import StoreError
from loadgen.service.jobs.order import LOG, Order

OnLine = Callable[[dict[str, Any]], None]
_INHERITED = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "PYTHONPATH"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "LD_LIBRARY_PATH", DIRECTORY_VARIABLE),
)
_LONGEST_LINE = 16 * 2**20


class Child(Protocol):
    """A process that waits for its order or carries it out."""

    @property
    def identity(self) -> dict[str, Any]:
        """By what it is found after the service was lost."""
        ...

    def give(self, order: Order) -> None:
        """Gives it its order. Raises StoreError when it has ended."""
        ...

    def stop(self) -> None:
        """Asks it to end in order; asked again, at once."""
        ...

    def kill(self) -> None:
        """Ends it."""
        ...

    def ended(self) -> int | None:
        """Its exit status once it has ended and all that it told was taken in; None until then."""
        ...

    def let_go(self) -> None:
        """Closes what connects to it; a process that still works ends in order then."""
        ...


Spawn = Callable[[Path, OnLine], Child]


def child_environment(variables: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """What a run may know of the service's environment: nothing but this machine's ways, and what runs may name."""
    return {name: variables[name] for name in (*_INHERITED, *allowed) if name in variables}


class ChildProcess:
    """See `Child`. Its log is the file of that name in the run's folder."""

    def __init__(self, folder: Path, on_line: OnLine, environment: Mapping[str, str]) -> None:
        """Raises StoreError when the process cannot be started."""
        try:
            with (folder / LOG).open("ab") as log:
                self._process = subprocess.Popen(
                    (sys.executable, "-m", "loadgen.service.child"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=dict(environment),
                    # A group, for `kill`, but no session of its own: Linux may share the processors out by session
                    # (sched_autogroup), and then `priority.step_back` would mean nothing to this process.
                    process_group=0,
                )
        except OSError as fault:
            raise StoreError(f"the process that measures cannot be started: {fault.strerror}") from fault
        found = identity_of(self._process.pid)
        unknown = {"pid": self._process.pid, "started_ticks": 0, "boot": ""}  # where there is no /proc to tell
        self._identity = unknown if found is None else as_stored(found)
        self._on_line = on_line
        self._reader = threading.Thread(target=self._read, name="child", daemon=True)
        self._reader.start()

    @property
    def identity(self) -> dict[str, Any]:
        """See `Child`."""
        return self._identity

    def give(self, order: Order) -> None:
        """See `Child`."""
        try:
            self._write(msgspec.json.encode(order) + b"\n")
        except OSError as fault:
            raise StoreError(f"the process that measures does not take its order: {fault.strerror}") from fault

    def stop(self) -> None:
        """See `Child`."""
        with suppress(OSError, ValueError):
            self._write(b"stop\n")

    def kill(self) -> None:
        """See `Child`. What it started ends with it: they share a group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)

    def ended(self) -> int | None:
        """See `Child`."""
        status = self._process.poll()
        if status is None or self._reader.is_alive():
            return None
        return status

    def let_go(self) -> None:
        """See `Child`."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            while line := lines.readline(_LONGEST_LINE):
                with suppress(msgspec.DecodeError):
                    self._on_line(msgspec.json.decode(line, type=dict[str, Any]))


def as_stored(identity: Identity) -> dict[str, Any]:
    """For the database."""
    return {"pid": identity.pid, "started_ticks": identity.started_ticks, "boot": identity.boot}


def still_lives(stored: Mapping[str, Any] | None) -> bool:
    """Whether the process that was stored so still runs on this machine."""
    return stored is not None and Identity(**stored).lives


def kill_stored(stored: Mapping[str, Any]) -> None:
    """Ends the process that was stored so, and what shares its group, if it is still that one."""
    if still_lives(stored):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(int(stored["pid"]), 9)
