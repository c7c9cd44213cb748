"""The queue in the database: runs wait in order, and begin when every server that they need is free."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from loadgen.service.jobs import journal
from loadgen.service.jobs.states import AT_WORK, ENDED, State
from loadgen.service.store.tables import leases, runs

_LOOKED_AT = 1000


def enqueue(connection: Connection, at_unix_ms: int, **values: Any) -> None:
    """Adds a run; `values` are its columns but for those that say how far it is."""
    connection.execute(
        insert(runs).values(
            state=State.QUEUED, created_unix_ms=at_unix_ms, attempts=0, last_event=0, files_removed=False, **values
        )
    )
    journal.append(connection, values["id"], "state", {"state": State.QUEUED}, at_unix_ms)


def load(connection: Connection, run_id: str) -> dict[str, Any] | None:
    """All columns of a run."""
    row = connection.execute(select(runs).where(runs.c.id == run_id)).mappings().one_or_none()
    return None if row is None else dict(row)


def at_work(connection: Connection, owner: str | None = None) -> list[dict[str, Any]]:
    """Runs that some process works on, of one service or of all."""
    found = select(runs).where(runs.c.state.in_(AT_WORK)).order_by(runs.c.number)
    if owner is not None:
        found = found.where(runs.c.owner == owner)
    return [dict(row) for row in connection.execute(found).mappings()]


def any_waits(connection: Connection) -> bool:
    """Whether there is a run in the queue."""
    return connection.execute(select(runs.c.id).where(runs.c.state == State.QUEUED).limit(1)).first() is not None


def length(connection: Connection) -> int:
    """How many runs wait."""
    waiting = select(func.count()).select_from(runs).where(runs.c.state == State.QUEUED)
    return int(connection.execute(waiting).scalar_one())


def move(
    connection: Connection, run_id: str, to: State, at_unix_ms: int, *, expected: Collection[State], **values: Any
) -> bool:
    """Takes a run from one of the expected states to another; False when it is in none of them.

    With the end of a run its servers are free.
    """
    if to in ENDED:
        values["ended_unix_ms"] = at_unix_ms
    done = connection.execute(
        update(runs).where(runs.c.id == run_id, runs.c.state.in_(expected)).values(state=to, **values)
    )
    if done.rowcount == 0:
        return False
    told = {name: values[name] for name in ("reason", "message", "exit_code", "valid") if values.get(name) is not None}
    journal.append(connection, run_id, "state", {"state": to, **told}, at_unix_ms)
    if to in ENDED or to is State.QUEUED:
        connection.execute(delete(leases).where(leases.c.run_id == run_id))
    return True


def claim(connection: Connection, owner: str, at_unix_ms: int, *, most: int) -> dict[str, Any] | None:
    """The next run that can begin, now `starting` with its servers leased; None when there is none.

    Of runs that need the same server the one that was asked for first goes first, whatever else it needs.
    """
    if len(at_work(connection, owner)) >= most:
        return None
    taken = set(connection.execute(select(leases.c.lease_key)).scalars())
    waiting = connection.execute(
        select(runs.c.id, runs.c.lease_keys)
        .where(runs.c.state == State.QUEUED)
        .order_by(runs.c.number)
        .limit(_LOOKED_AT)
    ).all()
    for run_id, keys in waiting:
        if taken.isdisjoint(keys) and _take(connection, run_id, keys, owner, at_unix_ms):
            return load(connection, run_id)
        taken.update(keys)
    return None


def _take(connection: Connection, run_id: str, keys: Sequence[str], owner: str, at_unix_ms: int) -> bool:
    """Leases all or nothing: another service may be faster."""
    try:
        with connection.begin_nested():
            connection.execute(
                insert(leases),
                [{"lease_key": key, "run_id": run_id, "owner": owner, "taken_unix_ms": at_unix_ms} for key in keys],
            )
            moved = move(
                connection,
                run_id,
                State.STARTING,
                at_unix_ms,
                expected=(State.QUEUED,),
                owner=owner,
                attempts=runs.c.attempts + 1,
                started_unix_ms=at_unix_ms,
            )
            if not moved:
                raise _Gone
    except (IntegrityError, _Gone):
        return False
    return True


def note_child(connection: Connection, run_id: str, owner: str, child: Mapping[str, Any]) -> bool:
    """Notes the process that is to measure; False when the run is not this service's any more."""
    done = connection.execute(
        update(runs)
        .where(runs.c.id == run_id, runs.c.owner == owner, runs.c.state == State.STARTING)
        .values(child=dict(child))
    )
    return done.rowcount == 1


class _Gone(Exception):  # noqa: N818 (a way out of the transaction)
    """The run is not waiting any more."""


def mark_to_end(connection: Connection, run_id: str, at_unix_ms: int) -> None:
    """Notes that a run which is at work is to be cancelled."""
    marked = connection.execute(
        update(runs)
        .where(runs.c.id == run_id, runs.c.state.in_(AT_WORK), runs.c.cancel_unix_ms.is_(None))
        .values(cancel_unix_ms=at_unix_ms)
    )
    if marked.rowcount:
        journal.append(connection, run_id, "cancel_asked", {}, at_unix_ms)


def waits_for(connection: Connection, run: Mapping[str, Any]) -> dict[str, Any]:
    """How many runs are before one that waits, and which of them, at work or before it, need a server that it needs."""
    ahead = (runs.c.state == State.QUEUED) & (runs.c.number < run["number"])
    position = connection.execute(select(func.count()).select_from(runs).where(ahead)).scalar_one()
    others = connection.execute(
        select(runs.c.id, runs.c.lease_keys)
        .where(ahead | runs.c.state.in_(AT_WORK))
        .order_by(runs.c.number)
        .limit(_LOOKED_AT)
    )
    needed = set(run["lease_keys"])
    return {"position": position, "runs": [run_id for run_id, keys in others if needed.intersection(keys)]}
