"""What master and workers say to each other over Locust's own connection, one message name for each kind.

`level` numbers the levels of a master's ladders, so that what comes late is not taken for the next one.
"""

import os
from pathlib import Path
from typing import Any

from loadgen import __version__

ASK_TIME, TELL_TIME = "loadgen-ask-time", "loadgen-tell-time"
"""Master to worker and back: the asker's instant, and with it the worker's own, its version and its machine."""

DO, SAY = "loadgen-do", "loadgen-say"
"""Master to worker: a `line` for the process that drives, a job for a new one; None ends it. And back: what it says,
None where it is gone."""

PIECE, WHOLE, GOT = "loadgen-piece", "loadgen-whole", "loadgen-got"
"""Worker to master: a piece of its records, at last their size and checksum. And back: what was wrong, or None."""

RECORDS_VARIABLE = "LOADGEN_LOCUST_RECORDS"
"""Names, for the workers that a master starts on its own machine, the folder in which each makes one for a level."""

_BOOT_ID, _TIME_NAMESPACE = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/time")


def about() -> dict[str, Any]:
    """What a worker says of itself."""
    records = os.environ.get(RECORDS_VARIABLE)
    return {"version": __version__, "machine": machine(), "pid": os.getpid(), "records": records}


def machine() -> str | None:
    """The same for all processes that share a monotonic clock; None where it is not known."""
    try:
        return f"{_BOOT_ID.read_text().strip()} {_TIME_NAMESPACE.readlink()}"
    except OSError:
        return None


def folder_name(worker: str, level: int) -> str:
    """The name of that folder."""
    return f"{worker}-{level}"
