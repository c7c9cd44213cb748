"""Who changed what, in the database: written with the change itself, so that neither is there without the other."""

from typing import Any

from sqlalchemy import Connection, insert, select

from loadgen.service.store.tables import audit


def note(
    connection: Connection,
    at_unix_ms: int,
    *,
    actor: str,
    action: str,
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


def page(connection: Connection, *, before: int | None, limit: int) -> list[dict[str, Any]]:
    """The newest lines before that one."""
    wanted = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if before is not None:
        wanted = wanted.where(audit.c.id < before)
    return [dict(row) for row in connection.execute(wanted).mappings()]
