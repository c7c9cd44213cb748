"""The life of a run, and why it ended as it did."""

from enum import StrEnum

from loadgen.core.errors import ExitCode


class State(StrEnum):
    """Queued, then at work (`starting` until the first request, `finishing` while results are made), then ended."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    FINISHING = "finishing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


AT_WORK = (State.STARTING, State.RUNNING, State.FINISHING)
ENDED = (State.COMPLETED, State.FAILED, State.CANCELLED, State.INTERRUPTED)


class Reason(StrEnum):
    """Why a run did not complete."""

    ASKED = "asked"
    TIME_LIMIT = "time_limit"
    SHUTDOWN = "shutdown"
    SERVICE_LOST = "service_lost"
    CHILD_LOST = "child_lost"
    CONFIGURATION = "configuration"
    TARGET = "target"
    STORAGE = "storage"
    INTERNAL = "internal"


def ending_of(exit_code: int, *, asked: bool, storage: bool, stopped_for: Reason | None) -> tuple[State, Reason | None]:
    """The state that an exit code of the command line stands for. A failed gate and an invalid measurement are results.

    `asked`: somebody asked for the run's end. `storage`: its files could not be written or read. `stopped_for`: why the
    service ended it otherwise.
    """
    match exit_code:
        case ExitCode.DONE | ExitCode.GATE_FAILED | ExitCode.INVALID_MEASUREMENT:
            return State.COMPLETED, None
        case ExitCode.INTERRUPTED if asked:
            return State.CANCELLED, Reason.ASKED
        case ExitCode.INTERRUPTED:
            return State.INTERRUPTED, stopped_for or Reason.SERVICE_LOST
        case ExitCode.USAGE if storage:
            return State.FAILED, Reason.STORAGE
        case ExitCode.USAGE:
            return State.FAILED, Reason.CONFIGURATION
        case ExitCode.TARGET_FAILED:
            return State.FAILED, Reason.TARGET
        case _:
            return State.FAILED, Reason.INTERNAL
