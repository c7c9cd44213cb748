"""Schedules: made, changed, paused, run at once, asked when they are due."""

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any
from uuid import uuid4

from fastapi import APIRouter, Query, Request, Response

from loadgen.core.errors import ConfigError
from loadgen.service.auth.audit import Action
from loadgen.service.auth.principal import Principal
from loadgen.service.clock import rfc3339
from loadgen.service.problems import FieldProblem, conflict, invalid, not_found
from loadgen.service.routes.changes import found, note
from loadgen.service.routes.common import NO_BODY, Id, Limit, Parts, Reader, Runner, limits_of, problems
from loadgen.service.runs import asked_of
from loadgen.service.schedules import store
from loadgen.service.schedules.cron import Timetable
from loadgen.service.services import Services
from loadgen.service.store import named
from loadgen.service.store.tables import schedules
from loadgen.service.wire.runs import RunDetail, RunRequest
from loadgen.service.wire.schedules import (
    CronCheck,
    DueTimes,
    FiringList,
    FiringView,
    ScheduleList,
    ScheduleRequest,
    ScheduleView,
)

router = APIRouter(prefix="/v1/schedules", tags=["schedules"])

_SHOWN = 5
Count = Annotated[int, Query(ge=1, le=50, description="How many.")]


@router.post("", status_code=201, responses=problems(409))
def make_schedule(body: ScheduleRequest, request: Request, parts: Parts, who: Runner) -> ScheduleView:
    """Makes a schedule. Its request is checked now, and again each time that it is due."""
    values = _checked(body, parts, who)
    schedule_id = uuid4().hex[:16]
    now = parts.clock.now_unix_ms()
    with parts.database.write() as connection:
        if not named.add(connection, schedules, id=schedule_id, created_by=who.id, created_unix_ms=now, **values):
            raise conflict("a schedule of this name is there already")
        note(connection, request, who, Action.SCHEDULE_MAKE, schedule_id, name=body.name)
    return _view(_found(parts, schedule_id))


@router.get("", responses=problems())
def list_schedules(parts: Parts, _who: Reader) -> ScheduleList:
    """All schedules, by name."""
    with parts.database.read() as connection:
        return ScheduleList(items=[_view(row) for row in named.every(connection, schedules)])


@router.post("/check", responses=problems())
def check_cron(body: CronCheck, parts: Parts, _who: Reader, count: Count = _SHOWN) -> DueTimes:
    """When a timetable would be due, before there is a schedule."""
    return _due(_timetable(body.cron, body.time_zone, parts), parts, count)


@router.get("/{schedule_id}", responses=problems(404))
def show_schedule(schedule_id: Id, parts: Parts, _who: Reader) -> ScheduleView:
    """One schedule."""
    return _view(_found(parts, schedule_id))


@router.put("/{schedule_id}", responses=problems(404, 409))
def change_schedule(
    schedule_id: Id, body: ScheduleRequest, request: Request, parts: Parts, who: Runner
) -> ScheduleView:
    """Changes all of it."""
    _found(parts, schedule_id)
    values = _checked(body, parts, who)
    with parts.database.write() as connection:
        if not named.change(connection, schedules, schedule_id, **values):
            raise conflict("a schedule of this name is there already")
        note(connection, request, who, Action.SCHEDULE_CHANGE, schedule_id, name=body.name)
    return _view(_found(parts, schedule_id))


@router.delete("/{schedule_id}", status_code=204, responses={**NO_BODY, **problems(404)})
def remove_schedule(schedule_id: Id, request: Request, parts: Parts, who: Runner) -> None:
    """Removes it. Runs that it led to stay."""
    with parts.database.write() as connection:
        if not named.remove(connection, schedules, schedule_id):
            raise not_found("schedule")
        note(connection, request, who, Action.SCHEDULE_REMOVE, schedule_id)


@router.post("/{schedule_id}/pause", responses=problems(404))
def pause_schedule(schedule_id: Id, request: Request, parts: Parts, who: Runner) -> ScheduleView:
    """It is not due any more, until it goes on."""
    return _set_paused(schedule_id, request, parts, who, paused=True)


@router.post("/{schedule_id}/resume", responses=problems(404))
def resume_schedule(schedule_id: Id, request: Request, parts: Parts, who: Runner) -> ScheduleView:
    """It goes on with its next instant; those that went by meanwhile are not made up for.

    Its request is checked as that of a new one: the limits of whoever asks hold for what its runs may ask for.
    """
    asked = RunRequest.model_validate(_found(parts, schedule_id)["request"])
    _check_request(asked, parts, who)
    if asked.time_limit_s is None:  # then its runs take as long as the settings allow
        _check_request(asked.model_copy(update={"time_limit_s": parts.policy.limits.run_time_s}), parts, who)
    return _set_paused(schedule_id, request, parts, who, paused=False)


@router.post("/{schedule_id}/run", status_code=202, responses=problems(404))
def run_schedule(schedule_id: Id, response: Response, parts: Parts, who: Runner) -> RunDetail:
    """A run of it at once, beside its timetable. The limits of whoever asks hold."""
    run_id = parts.scheduler.run_now(_found(parts, schedule_id), who.id, limits_of(parts, who))
    response.headers["Location"] = f"/v1/runs/{run_id}"
    return parts.runs.detail(run_id)


@router.get("/{schedule_id}/next", responses=problems(404))
def show_due_times(schedule_id: Id, parts: Parts, _who: Reader, count: Count = _SHOWN) -> DueTimes:
    """When it is due next."""
    row = _found(parts, schedule_id)
    return _due(Timetable(row["cron"], row["time_zone"]), parts, count)


@router.get("/{schedule_id}/firings", responses=problems(404))
def list_firings(schedule_id: Id, parts: Parts, _who: Reader, limit: Limit = 50) -> FiringList:
    """The latest instants at which it was due, and what became of them."""
    _found(parts, schedule_id)
    with parts.database.read() as connection:
        rows = store.decided(connection, schedule_id, limit)
    return FiringList(
        items=[
            FiringView(
                due_at=rfc3339(row["fire_at_unix_ms"]) or "",
                outcome=row["outcome"],
                run_id=row["run_id"],
                decided_at=rfc3339(row["decided_unix_ms"]) or "",
            )
            for row in rows
        ]
    )


def _checked(body: ScheduleRequest, parts: Services, who: Principal) -> dict[str, Any]:
    table = _timetable(body.cron, body.time_zone, parts)
    limits = limits_of(parts, who)
    _check_request(body.request, parts, who)
    own = {} if limits.run_time_s >= parts.policy.limits.run_time_s else {"time_limit_s": limits.run_time_s}
    return {
        "name": body.name,
        "cron": body.cron,
        "time_zone": body.time_zone,
        "request": own | body.request.model_dump(mode="json", exclude_none=True),
        "misfire_grace_s": body.misfire_grace_s,
        "when_busy": body.when_busy,
        "paused": body.paused,
        "next_unix_ms": table.next_after(parts.clock.now_unix_ms()),
    }


def _check_request(request: RunRequest, parts: Services, who: Principal) -> None:
    parts.runs.admitted(asked_of(request), limits_of(parts, who))
    parts.runs.check_baseline(request)


def _timetable(cron: str, time_zone: str, parts: Services) -> Timetable:
    table = Timetable(cron, time_zone)
    try:
        table.check(parts.clock.now_unix_ms())
    except ConfigError as error:
        name, _, detail = str(error).partition(": ")
        raise invalid(str(error), FieldProblem(pointer=f"/{name}", detail=detail)) from None
    return table


def _set_paused(schedule_id: str, request: Request, parts: Services, who: Principal, *, paused: bool) -> ScheduleView:
    row = _found(parts, schedule_id)
    due = Timetable(row["cron"], row["time_zone"]).next_after(parts.clock.now_unix_ms())
    with parts.database.write() as connection:
        named.change(connection, schedules, schedule_id, paused=paused, next_unix_ms=due)
        note(connection, request, who, Action.SCHEDULE_PAUSE if paused else Action.SCHEDULE_RESUME, schedule_id)
    parts.hub.tell()
    return _view(_found(parts, schedule_id))


def _found(parts: Services, schedule_id: str) -> dict[str, Any]:
    return found(parts, schedules, schedule_id, "schedule")


def _due(table: Timetable, parts: Services, count: int) -> DueTimes:
    instants = list(islice(table.after(parts.clock.now_unix_ms()), count))
    local = [datetime.fromtimestamp(each / 1000, tz=UTC).astimezone(table.zone()) for each in instants]
    return DueTimes(
        words=table.words(),
        items=[rfc3339(each) or "" for each in instants],
        local=[each.isoformat(timespec="minutes") for each in local],
    )


def _view(row: dict[str, Any]) -> ScheduleView:
    return ScheduleView.of(
        row,
        words=Timetable(row["cron"], row["time_zone"]).words(),
        created_at=rfc3339(row["created_unix_ms"]) or "",
        next_at=None if row["paused"] else rfc3339(row["next_unix_ms"]),
        last_at=rfc3339(row["last_unix_ms"]),
    )
