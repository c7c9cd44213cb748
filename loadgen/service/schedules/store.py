"""Which schedules are due, and what became of each instant at which one was. The rest is as `store.named` has it."""

from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from loadgen.service.store.tables import firings, schedules

MISSED = "missed"


def due(connection: Connection, now_unix_ms: int) -> list[dict[str, Any]]:
    """Those whose instant has come."""
    found = select(schedules).where(
        schedules.c.paused.is_(False), schedules.c.next_unix_ms.is_not(None), schedules.c.next_unix_ms <= now_unix_ms
    )
    return [dict(row) for row in connection.execute(found.order_by(schedules.c.next_unix_ms)).mappings()]


def decide(connection: Connection, schedule_id: str, fire_at_unix_ms: int, outcome: str, decided_unix_ms: int) -> bool:
    """Writes down what becomes of an instant; False when that was decided before, so that it cannot fire twice.

    One that was written down as missed, by a clock that was ahead, may still come.
    """
    try:
        with connection.begin_nested():
            connection.execute(
                insert(firings).values(
                    schedule_id=schedule_id,
                    fire_at_unix_ms=fire_at_unix_ms,
                    outcome=outcome,
                    decided_unix_ms=decided_unix_ms,
                )
            )
    except IntegrityError:
        return (
            connection.execute(
                update(firings)
                .where(
                    firings.c.schedule_id == schedule_id,
                    firings.c.fire_at_unix_ms == fire_at_unix_ms,
                    firings.c.outcome == MISSED,
                    firings.c.outcome != outcome,
                )
                .values(outcome=outcome, decided_unix_ms=decided_unix_ms)
            ).rowcount
            == 1
        )
    return True


def note_run(connection: Connection, schedule_id: str, fire_at_unix_ms: int, run_id: str) -> None:
    """The run that an instant led to."""
    connection.execute(
        update(firings)
        .where(firings.c.schedule_id == schedule_id, firings.c.fire_at_unix_ms == fire_at_unix_ms)
        .values(run_id=run_id)
    )


def decided(connection: Connection, schedule_id: str, limit: int) -> list[dict[str, Any]]:
    """The latest instants and what became of them."""
    found = (
        select(firings)
        .where(firings.c.schedule_id == schedule_id)
        .order_by(firings.c.fire_at_unix_ms.desc())
        .limit(limit)
    )
    return [dict(row) for row in connection.execute(found).mappings()]
