"""Rows that have an id, and a name that is there once."""

from typing import Any

from sqlalchemy import Connection, Table, delete, insert, select, update
from sqlalchemy.exc import IntegrityError


def load(connection: Connection, table: Table, row_id: str) -> dict[str, Any] | None:
    """All columns."""
    row = connection.execute(select(table).where(table.c.id == row_id)).mappings().one_or_none()
    return None if row is None else dict(row)


def every(connection: Connection, table: Table) -> list[dict[str, Any]]:
    """All of them, by name."""
    return [dict(row) for row in connection.execute(select(table).order_by(table.c.name)).mappings()]


def add(connection: Connection, table: Table, **values: Any) -> bool:
    """False when the name is taken."""
    try:
        with connection.begin_nested():
            connection.execute(insert(table).values(**values))
    except IntegrityError:
        return False
    return True


def change(connection: Connection, table: Table, row_id: str, **values: Any) -> bool:
    """False when the new name is taken."""
    try:
        with connection.begin_nested():
            connection.execute(update(table).where(table.c.id == row_id).values(**values))
    except IntegrityError:
        return False
    return True


def remove(connection: Connection, table: Table, row_id: str) -> bool:
    """False when there is none."""
    return connection.execute(delete(table).where(table.c.id == row_id)).rowcount == 1
