"""Who changed what, in the database: written with the change itself, so that neither is there without the other."""

from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, insert, select

from loadgen.service.store.tables import audit


class Action(StrEnum):
    """What can be done to what."""

    BASELINE_MAKE = "baseline.make"
    BASELINE_REMOVE = "baseline.remove"
    IMPORT = "import"
    KEY_MAKE = "key.make"
    KEY_REVOKE = "key.revoke"
    SCHEDULE_CHANGE = "schedule.change"
    SCHEDULE_MAKE = "schedule.make"
    SCHEDULE_PAUSE = "schedule.pause"
    SCHEDULE_REMOVE = "schedule.remove"
    SCHEDULE_RESUME = "schedule.resume"
    SESSION_OPEN = "session.open"
    WEBHOOK_CHANGE = "webhook.change"
    WEBHOOK_MAKE = "webhook.make"
    WEBHOOK_REMOVE = "webhook.remove"


def note(
    connection: Connection,
    at_unix_ms: int,
    *,
    actor: str,
    action: Action,
    subject: str | None = None,
    address: str | None = None,
    **detail: Any,
) -> None:
    """One line. `detail` holds no secret."""
    connection.execute(
        insert(audit).values(
            at_unix_ms=at_unix_ms, actor=actor, address=address, action=action, subject=subject, detail=detail
        )
    )


def page(
    connection: Connection, *, action: Action | None, before: int | None, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """The newest lines before that one, and the line behind which the next page begins; None at the end."""
    wanted = select(audit).order_by(audit.c.id.desc()).limit(limit + 1)
    if action is not None:
        wanted = wanted.where(audit.c.action == action)
    if before is not None:
        wanted = wanted.where(audit.c.id < before)
    rows = [dict(row) for row in connection.execute(wanted).mappings()]
    return rows[:limit], rows[limit - 1]["id"] if len(rows) > limit else None
