"""What happened to a run, in order: numbered from 1 without a gap, so that a reader can go on where it was."""

from typing import Any

from sqlalchemy import Connection, insert, select, update

from loadgen.service.store.tables import events, runs


def append(connection: Connection, run_id: str, kind: str, data: dict[str, Any], at_unix_ms: int) -> int:
    """Adds an event and returns its number."""
    number = connection.execute(
        update(runs).where(runs.c.id == run_id).values(last_event=runs.c.last_event + 1).returning(runs.c.last_event)
    ).scalar_one()
    connection.execute(insert(events).values(run_id=run_id, seq=number, at_unix_ms=at_unix_ms, kind=kind, data=data))
    return int(number)


def read(connection: Connection, run_id: str, *, after: int, limit: int) -> list[dict[str, Any]]:
    """The events behind that number."""
    found = connection.execute(
        select(events.c.seq, events.c.at_unix_ms, events.c.kind, events.c.data)
        .where(events.c.run_id == run_id, events.c.seq > after)
        .order_by(events.c.seq)
        .limit(limit)
    )
    return [dict(row) for row in found.mappings()]
