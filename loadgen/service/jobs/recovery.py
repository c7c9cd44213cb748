"""Runs whose service is gone: begun again when nothing was sent, else brought to their end, never run twice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, update

from loadgen.service.clock import Clock
from loadgen.service.jobs.ending import Follow, end
from loadgen.service.jobs.order import has_begun
from loadgen.service.jobs.process import kill_stored, still_lives
from loadgen.service.jobs.queue import load, move
from loadgen.service.jobs.states import AT_WORK, Reason, State
from loadgen.service.store.tables import leases, runs

_MOST_ATTEMPTS = 5
ORPHAN_LIMIT_S = 180.0


def adopt(connection: Connection, run_id: str, *, before: str | None, owner: str) -> dict[str, Any] | None:
    """This service sees to the run from now on; the run as it is then, None when another one was faster.

    From then on the service before can note no process for it, so whether it was begun is settled.
    """
    done = connection.execute(
        update(runs)
        .where(runs.c.id == run_id, runs.c.owner.is_not_distinct_from(before), runs.c.state.in_(AT_WORK))
        .values(owner=owner)
    )
    if done.rowcount == 0:
        return None
    connection.execute(update(leases).where(leases.c.run_id == run_id).values(owner=owner))
    return load(connection, run_id)


def was_never_begun(run: dict[str, Any], folder: Path) -> bool:
    """Whether nothing can have been sent and nothing will be.

    An order is given only after the process was noted, and a process that has its order says in the folder that it
    begins. A folder that is not there although a process was noted is another machine's, which nobody can ask.
    """
    return run["child"] is None or (folder.is_dir() and not has_begun(folder))


def begin_again(connection: Connection, run: dict[str, Any], at_unix_ms: int, *, follow: Sequence[Follow]) -> State:
    """Back into the queue, at its old place; not for ever, and not when somebody asked for its end meanwhile."""
    if run["cancel_unix_ms"] is None and run["attempts"] < _MOST_ATTEMPTS:
        move(connection, run["id"], State.QUEUED, at_unix_ms, expected=AT_WORK, owner=None, child=None)
        return State.QUEUED
    values: dict[str, Any] = {"reason": Reason.ASKED, "owner": None, "child": None}
    state = State.CANCELLED
    if run["cancel_unix_ms"] is None:
        state = State.FAILED
        message = f"the service was lost {run['attempts']} times before it could begin"
        values = {"reason": Reason.SERVICE_LOST, "message": message}
    end(connection, run["id"], state, at_unix_ms, expected=AT_WORK, follow=follow, **values)
    return state


class Orphans:
    """Processes that outlived their service. They end by themselves; one that does not is ended."""

    def __init__(self, clock: Clock, limit_s: float = ORPHAN_LIMIT_S) -> None:
        self._clock, self._limit_s = clock, limit_s
        self._since_s: dict[str, float] = {}

    def has_ended(self, run: dict[str, Any]) -> bool:
        """Whether the process of an adopted run is gone by now."""
        if not still_lives(run["child"]):
            self._since_s.pop(run["id"], None)
            return True
        since_s = self._since_s.setdefault(run["id"], self._clock.monotonic_s())
        if self._clock.monotonic_s() - since_s > self._limit_s:
            kill_stored(run["child"])
        return False
