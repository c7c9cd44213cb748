"""Lists of runs, and a run as lists show it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from loadgen.service.clock import rfc3339
from loadgen.service.jobs.states import State
from loadgen.service.problems import invalid
from loadgen.service.store.tables import runs
from loadgen.service.wire.runs import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which runs of all. `since` and `until` bound when they were asked for, in Unix milliseconds."""

    kind: str | None = None
    state: State | None = None
    schedule_id: str | None = None
    name: str | None = None
    label: tuple[str, str] | None = None
    target: str | None = None
    since_unix_ms: int | None = None
    until_unix_ms: int | None = None


def page(
    connection: Connection, filters: Filters, *, before: str | None, limit: int
) -> tuple[list[RunView], str | None]:
    """The newest runs before that one, and the cursor of the page behind."""
    wanted = [
        column == value
        for column, value in (
            (runs.c.kind, filters.kind),
            (runs.c.state, filters.state),
            (runs.c.schedule_id, filters.schedule_id),
        )
        if value is not None
    ]
    if filters.name is not None:
        wanted.append(runs.c.name.icontains(filters.name, autoescape=True))
    if filters.label is not None:
        name, value = filters.label
        wanted.append(runs.c.labels[name].as_string() == value)
    if filters.target is not None:
        url, profile = (runs.c.target[name].as_string() for name in ("url", "profile"))
        part = filters.target
        wanted.append(url.icontains(part, autoescape=True) | profile.icontains(part, autoescape=True))
    if filters.since_unix_ms is not None:
        wanted.append(runs.c.created_unix_ms >= filters.since_unix_ms)
    if filters.until_unix_ms is not None:
        wanted.append(runs.c.created_unix_ms < filters.until_unix_ms)
    if before is not None:
        last = connection.execute(select(runs.c.number).where(runs.c.id == before)).scalar_one_or_none()
        if last is None:
            raise invalid("cursor: expected one that a page gave as next")
        wanted.append(runs.c.number < last)
    rows = (
        connection.execute(select(runs).where(*wanted).order_by(runs.c.number.desc()).limit(limit + 1)).mappings().all()
    )
    items = [view_of(dict(row)) for row in rows[:limit]]
    return items, items[-1].id if len(rows) > limit else None


def view_of(row: Mapping[str, Any]) -> RunView:
    """A row as it is shown."""
    return RunView.of(
        row,
        created_at=rfc3339(row["created_unix_ms"]) or "",
        started_at=rfc3339(row["started_unix_ms"]),
        ended_at=rfc3339(row["ended_unix_ms"]),
        cancel_asked_at=rfc3339(row["cancel_unix_ms"]),
    )
