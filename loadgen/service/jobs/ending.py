"""How a run ends: its last state, and in the same transaction all that follows from it."""

import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from loadgen.service.jobs.order import Outcome, artefact_in, load_outcome
from loadgen.service.jobs.queue import load, mark_to_end, move
from loadgen.service.jobs.states import AT_WORK, Reason, State, ending_of

LOG = logging.getLogger("loadgen.service.jobs")

_LONGEST_MESSAGE = 2000

Follow = Callable[[Connection, dict[str, Any], Outcome | None, int], None]
"""What follows from an end: gets the run as it is then, its outcome if there is one, and the instant."""


def conclude(
    connection: Connection,
    run: dict[str, Any],
    folder: Path,
    at_unix_ms: int,
    *,
    stopped_for: Reason | None,
    follow: Sequence[Follow],
    lost: str = "the process that measured ended without an outcome",
    told: Outcome | None = None,
) -> State | None:
    """Takes in what the process of a run left, complete or not; None when the run had ended already.

    `told` is the outcome that it could not leave.
    """
    outcome = load_outcome(folder) or told
    row = load(connection, run["id"])
    if row is None:
        return None
    asked = row["cancel_unix_ms"] is not None
    values: dict[str, Any] = {"artefact": artefact_in(folder)}
    if outcome is None:
        state = State.CANCELLED if asked else State.INTERRUPTED
        reason: Reason | None = Reason.ASKED if asked else stopped_for or Reason.CHILD_LOST
        values["message"] = lost
    else:
        state, reason = ending_of(outcome.exit_code, asked=asked, storage=outcome.storage, stopped_for=stopped_for)
        message = outcome.message or "; ".join(outcome.gates) or None
        values |= {
            "artefact": outcome.artefact or values["artefact"],
            "exit_code": outcome.exit_code,
            "valid": outcome.valid,
            "gate_failed": bool(outcome.gates),
            "result": outcome.result or None,
            "message": None if message is None else message[:_LONGEST_MESSAGE].replace("\0", "?"),
        }
    values |= {"reason": reason, "child": None}
    ended = end(connection, run["id"], state, at_unix_ms, expected=AT_WORK, follow=follow, outcome=outcome, **values)
    return state if ended else None


def end(
    connection: Connection,
    run_id: str,
    state: State,
    at_unix_ms: int,
    *,
    expected: Collection[State],
    follow: Sequence[Follow],
    outcome: Outcome | None = None,
    **values: Any,
) -> bool:
    """Ends a run, with all that follows from it; False when it is in none of the expected states."""
    if not move(connection, run_id, state, at_unix_ms, expected=expected, **values):
        return False
    ended = load(connection, run_id)
    assert ended is not None
    for each in follow:
        try:
            with connection.begin_nested():
                each(connection, ended, outcome, at_unix_ms)
        except Exception:  # the run has ended all the same
            LOG.exception("what follows from the end of a run failed", extra={"run_id": run_id})
    return True


def ask_to_cancel(connection: Connection, run_id: str, at_unix_ms: int, *, follow: Sequence[Follow]) -> State | None:
    """Ends a run that waits, and marks one that is at work; the state that it is in then, None without such a run."""
    ended = end(
        connection,
        run_id,
        State.CANCELLED,
        at_unix_ms,
        expected=(State.QUEUED,),
        follow=follow,
        reason=Reason.ASKED,
        cancel_unix_ms=at_unix_ms,
    )
    if ended:
        return State.CANCELLED
    mark_to_end(connection, run_id, at_unix_ms)
    found = load(connection, run_id)
    return None if found is None else State(found["state"])
