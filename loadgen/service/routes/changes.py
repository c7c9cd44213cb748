"""What routes share that make, find and remove things which have a name."""

from typing import Any

from fastapi import Request
from sqlalchemy import Connection, Table

from loadgen.service.auth import audit
from loadgen.service.auth.principal import Principal
from loadgen.service.problems import not_found
from loadgen.service.routes.common import knock_of, services_of
from loadgen.service.services import Services
from loadgen.service.store import named


def note(
    connection: Connection,
    request: Request,
    who: Principal,
    action: audit.Action,
    subject: str | None = None,
    **detail: Any,
) -> None:
    """A line of the audit log, in the transaction of what it tells of."""
    now = services_of(request).clock.now_unix_ms()
    address = knock_of(request).address
    audit.note(connection, now, actor=who.id, action=action, subject=subject, address=address, **detail)


def found(parts: Services, table: Table, row_id: str, what: str) -> dict[str, Any]:
    """All columns. Raises Problem when there is no such thing."""
    with parts.database.read() as connection:
        row = named.load(connection, table, row_id)
    if row is None:
        raise not_found(what)
    return row
