"""Schedules and what became of them."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from loadgen.service.wire.common import Body, Instant, Name, View
from loadgen.service.wire.runs import RunRequest


class ScheduleRequest(Body):
    """A run by the calendar. `request` is what `POST /v1/runs` takes."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "nightly capacity",
                    "cron": "30 2 * * *",
                    "time_zone": "Europe/Berlin",
                    "request": {
                        "kind": "capacity",
                        "target": {"url": "http://127.0.0.1:8000"},
                        "options": {"slo": "ttft=500ms,tpot=50ms"},
                    },
                }
            ]
        },
    )

    name: Name
    cron: str = Field(max_length=200, description="Minute, hour, day of month, month, day of week.")
    time_zone: str = Field("UTC", max_length=64, description="Of the IANA list.")
    request: RunRequest
    misfire_grace_s: float = Field(
        600.0, ge=0, le=7 * 86400, description="An instant that nobody was there for still counts for so long."
    )
    when_busy: Literal["skip", "queue"] = Field("skip", description="What to do when its server is in use.")
    paused: bool = False


class ScheduleView(View):
    """A schedule, and when it is due next."""

    id: str
    name: str
    cron: str
    time_zone: str
    words: str
    request: dict[str, Any]
    misfire_grace_s: float
    when_busy: str
    paused: bool
    created_by: str
    created_at: Instant
    next_at: Instant | None
    last_at: Instant | None


class ScheduleList(View):
    """All schedules, by name."""

    items: list[ScheduleView]


class FiringView(View):
    """An instant at which a schedule was due, and what became of it: run, missed, busy, refused."""

    due_at: Instant
    outcome: str
    run_id: str | None
    decided_at: Instant


class FiringList(View):
    """The latest ones."""

    items: list[FiringView]


class DueTimes(View):
    """When it is due next, in UTC and by the clocks of its time zone."""

    words: str
    items: list[Instant]
    local: list[str]


class CronCheck(Body):
    """A timetable to look at."""

    cron: str = Field(max_length=200)
    time_zone: str = Field("UTC", max_length=64)
