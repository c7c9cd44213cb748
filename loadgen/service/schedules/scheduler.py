"""Fires schedules when they are due, each instant once, whatever happens to clocks and services."""

import logging
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, select

from loadgen.core.errors import LoadgenError
from loadgen.service.admission.admit import Admitted
from loadgen.service.admission.limits import Limits
from loadgen.service.clock import Clock
from loadgen.service.jobs.hub import Hub
from loadgen.service.jobs.states import AT_WORK, State
from loadgen.service.problems import Problem
from loadgen.service.runs import Runs, asked_of
from loadgen.service.schedules import store
from loadgen.service.schedules.cron import Timetable
from loadgen.service.store import named
from loadgen.service.store.database import Database
from loadgen.service.store.tables import runs as runs_table
from loadgen.service.store.tables import schedules
from loadgen.service.wire.runs import RunRequest

LOG = logging.getLogger("loadgen.service.schedules")

JUMP_MS = 2000
"""Wall time that went by beside the monotonic clock's: a clock that was set."""

_LONGEST_OUTCOME = 200

Announce = Callable[[Connection, str, dict[str, Any]], None]


class Outcome(StrEnum):
    """What became of an instant."""

    RUN = "run"
    MISSED = store.MISSED
    BUSY = "busy"
    REFUSED = "refused"


class Scheduler:
    """One for a service. `announce` is told of what people may want to hear: kind and facts."""

    def __init__(self, database: Database, clock: Clock, runs: Runs, hub: Hub, announce: Announce) -> None:
        self._database, self._clock, self._runs, self._hub, self._announce = database, clock, runs, hub, announce
        self._seen: tuple[int, float] | None = None

    def turn(self) -> None:
        """Fires what is due now."""
        now = self._clock.now_unix_ms()
        if self._has_jumped(now):
            self._plan_anew(now)
        with self._database.read() as connection:
            rows = store.due(connection, now)
        for row in rows:
            try:
                self._fire(row, now)
            except (
                LoadgenError
            ):  # such as a time zone that this machine does not know any more: the others are due all the same
                LOG.exception("schedule cannot be fired", extra={"schedule": row["name"]})

    def run_now(self, row: dict[str, Any], principal: str, limits: Limits) -> str:
        """A run of the schedule beside its timetable, within these limits; returns its id. Raises Problem."""
        request, admitted = self._admitted(row, limits)
        with self._database.write() as connection:
            run_id = self._runs.add(
                connection, request, asked_of(request), admitted, principal=principal, schedule_id=row["id"]
            )
        self._hub.tell()
        return run_id

    def _has_jumped(self, now: int) -> bool:
        """Whether the clock was set since the last look; at the first one it may have been."""
        before, self._seen = self._seen, (now, self._clock.monotonic_s())
        if before is None:
            return True
        went_by_ms = (self._seen[1] - before[1]) * 1000
        return abs(now - before[0] - went_by_ms) > JUMP_MS

    def _plan_anew(self, now: int) -> None:
        """After a clock that was ahead is set back, what was planned by it lies too far away."""
        with self._database.write() as connection:
            for row in named.every(connection, schedules):
                expected = Timetable(row["cron"], row["time_zone"]).next_after(now)
                planned = row["next_unix_ms"]
                if not row["paused"] and expected is not None and (planned is None or planned > expected):
                    named.change(connection, schedules, row["id"], next_unix_ms=expected)

    def _fire(self, row: dict[str, Any], now: int) -> None:
        """Of several instants that went by together the latest may lead to a run, the others were missed."""
        table = Timetable(row["cron"], row["time_zone"])
        *missed, latest = table.due(row["next_unix_ms"], now)
        in_time = now - latest <= row["misfire_grace_s"] * 1000
        request, admitted, fault = None, None, None
        if in_time:
            try:
                request, admitted = self._admitted(row, self._runs.limits)
            except (Problem, LoadgenError) as error:
                fault = str(error)
        with self._database.write() as connection:
            for instant in missed:
                store.decide(connection, row["id"], instant, Outcome.MISSED, now)
            named.change(
                connection, schedules, row["id"], next_unix_ms=table.next_after(max(now, latest)), last_unix_ms=latest
            )
            outcome = self._outcome(connection, row, admitted, in_time=in_time)
            if outcome is Outcome.RUN:
                try:
                    self._runs.check_room(connection)
                except Problem as full:
                    outcome, fault = Outcome.REFUSED, str(full)
            if not store.decide(connection, row["id"], latest, outcome, now):
                return
            if outcome is Outcome.RUN:
                assert request is not None
                assert admitted is not None
                run_id = self._runs.add(
                    connection,
                    request,
                    asked_of(request),
                    admitted,
                    principal=f"schedule:{row['name']}"[:_LONGEST_OUTCOME],
                    schedule_id=row["id"],
                    fire_at_unix_ms=latest,
                )
                store.note_run(connection, row["id"], latest, run_id)
            else:
                facts = {"schedule_id": row["id"], "name": row["name"], "due_unix_ms": latest, "why": fault}
                self._announce(connection, f"schedule.{outcome}", facts)
        told = {"schedule": row["name"], "outcome": outcome, "missed": len(missed), "fault": fault}
        LOG.info("schedule is due", extra=told)
        self._hub.tell()

    def _outcome(
        self, connection: Connection, row: dict[str, Any], admitted: Admitted | None, *, in_time: bool
    ) -> Outcome:
        if not in_time:
            return Outcome.MISSED
        if admitted is None:
            return Outcome.REFUSED
        waits = row["when_busy"] == "queue"
        return Outcome.BUSY if not waits and _is_busy(connection, admitted.lease_keys) else Outcome.RUN

    def _admitted(self, row: dict[str, Any], limits: Limits) -> tuple[RunRequest, Admitted]:
        request = RunRequest.model_validate(row["request"])
        return request, self._runs.admitted(asked_of(request), limits)


def _is_busy(connection: Connection, keys: list[str]) -> bool:
    """Whether another run uses or waits for one of these servers."""
    found = connection.execute(
        select(runs_table.c.lease_keys).where(runs_table.c.state.in_((*AT_WORK, State.QUEUED)))
    ).scalars()
    return any(not set(keys).isdisjoint(each) for each in found)
