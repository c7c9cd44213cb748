"""Faults of ours and of the user. A server's faults are data (`record.Failure`), never exceptions.

LoadgenError
├── ConfigError          an option, a variable or a configuration file
├── DataError            a trace or prompts file that cannot be used as a whole
│   └── TraceFormatError one row of it
├── StoreError           a run folder or a file in it
├── TargetError          the server could not be reached or used at all
└── InternalError        a promise of ours was broken; loud, so that no number hides it
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the command line ends with."""

    DONE = 0
    GATE_FAILED = 1
    USAGE = 2
    INVALID_MEASUREMENT = 3
    TARGET_FAILED = 4
    INTERRUPTED = 130


class LoadgenError(Exception):
    """A fault with a message for people; `exit_code` is what the command line ends with."""

    exit_code = ExitCode.USAGE


class ConfigError(LoadgenError):
    """A wrong option or setting; the message names it, what it held and what was expected."""


class DataError(LoadgenError):
    """A data file that cannot be used; the message names the file."""


class TraceFormatError(DataError):
    """A row that cannot be used: file, physical line (1-based), field and what was expected."""

    def __init__(self, path: str, line: int, reason: str, *, field: str | None = None) -> None:
        self.path, self.line, self.reason, self.field = path, line, reason, field
        where = f"{path}:{line}" + (f": field {field!r}" if field else "")
        super().__init__(f"{where}: {reason}")


class StoreError(LoadgenError):
    """A run folder that cannot be read or written."""


class TargetError(LoadgenError):
    """The target is unreachable or unusable before any load was sent."""

    exit_code = ExitCode.TARGET_FAILED


class InternalError(LoadgenError):
    """A broken invariant of the load generator itself."""

    exit_code = ExitCode.INVALID_MEASUREMENT
