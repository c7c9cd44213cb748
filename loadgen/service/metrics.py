"""The page for Prometheus: what runs measure now, what capacity tests found last, and the service itself."""

from collections.abc import Iterator

from sqlalchemy import Column, Connection, func, select

from loadgen import __version__
from loadgen.adapters.prometheus.series import Family, Series, Spec
from loadgen.service.history import history
from loadgen.service.jobs.exposition import decode_families, merged
from loadgen.service.jobs.hearing import Hearing
from loadgen.service.jobs.states import State
from loadgen.service.store.database import Database
from loadgen.service.store.tables import deliveries, firings, runs, schedules
from loadgen.service.webhooks import outbox

BUILD = Spec.of("service_build_info", "gauge", "1, with the version of the service.")
RUNS = Spec.of("service_runs", "gauge", "Runs that the service knows, by state.")
QUEUED_SINCE = Spec.of(
    "service_queue_oldest_timestamp_seconds", "gauge", "Since when the run waits that waits longest."
)
NEXT = Spec.of("service_schedule_next_timestamp_seconds", "gauge", "When a schedule is due next.")
FIRINGS = Spec.of("service_schedule_firings", "gauge", "Instants at which a schedule was due, by what became of them.")
DELIVERIES = Spec.of("service_webhook_deliveries", "gauge", "Messages to webhooks of the last month, by state.")
CHANGE = Spec.of(
    "service_capacity_change",
    "gauge",
    "The latest capacity test of a series against those before it: -1 lower, 0 no change or too few, 1 higher.",
)
EXPECTED = Spec.of("service_capacity_expected_ratio", "gauge", "That capacity over the median of those before it.")

_CHANGES = {"regression": -1, "improvement": 1}


class Metrics:
    """Gathers the page."""

    def __init__(self, database: Database, hearing: Hearing) -> None:
        self._database, self._hearing = database, hearing

    def families(self) -> list[Family]:
        """Everything as it is now. Where a run at work and a kept result have the same series, it is the run's."""
        measured = [decode_families(each) for each in self._hearing.measured()]
        with self._database.read() as connection:
            kept = [decode_families(row["detail"]["families"]) for row in history.all_series(connection)]
            own = list(_own(connection))
        return merged([*measured, *kept, own])


def _own(connection: Connection) -> Iterator[Family]:
    yield BUILD.family([Series(labels={"version": __version__}, value=1)])
    counts = _counted(connection, runs.c.state)
    yield RUNS.family(Series(labels={"state": state}, value=counts.get(state, 0)) for state in State)
    oldest = connection.execute(
        select(func.min(runs.c.created_unix_ms)).where(runs.c.state == State.QUEUED)
    ).scalar_one_or_none()
    if oldest is not None:
        yield QUEUED_SINCE.family([Series(labels={}, value=oldest / 1000)])
    due = connection.execute(
        select(schedules.c.name, schedules.c.next_unix_ms).where(
            schedules.c.paused.is_(False), schedules.c.next_unix_ms.is_not(None)
        )
    ).all()
    if due:
        yield NEXT.family(Series(labels={"schedule": name}, value=at / 1000) for name, at in due)
    fired = connection.execute(select(firings.c.outcome, func.count()).group_by(firings.c.outcome)).all()
    if fired:
        yield FIRINGS.family(Series(labels={"outcome": outcome}, value=n) for outcome, n in fired)
    told = _counted(connection, deliveries.c.state)
    states = (outbox.WAITING, outbox.DELIVERED, outbox.GIVEN_UP)
    yield DELIVERIES.family(Series(labels={"state": state}, value=told.get(state, 0)) for state in states)
    yield from _changes(connection)


def _counted(connection: Connection, column: "Column[str]") -> dict[str, int]:
    """How many rows have each value of the column."""
    return {row[0]: row[1] for row in connection.execute(select(column, func.count()).group_by(column))}


def _changes(connection: Connection) -> Iterator[Family]:
    found = [({"series": row["series"], "variable": row["variable"]}, row) for row in history.all_series(connection)]
    if found:
        yield CHANGE.family(Series(labels=labels, value=_CHANGES.get(row["verdict"], 0)) for labels, row in found)
    known = [(labels, row["detail"]["ratio"]) for labels, row in found if row["detail"]["ratio"] is not None]
    if known:
        yield EXPECTED.family(Series(labels=labels, value=ratio) for labels, ratio in known)
