"""What the API takes and gives, as JSON. `docs/service.md` and the OpenAPI document are made of this."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.config import JsonDict

from loadgen.adapters.servers.redaction import holds_secret
from loadgen.options.fields import VariableName
from loadgen.service.auth.principal import Scope
from loadgen.service.jobs.states import State

Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Reference = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]
LabelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,62}$")]
LabelValue = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Labels = Annotated[dict[LabelName, LabelValue], Field(max_length=32)]
Kind = Literal["run", "sweep", "capacity", "experiment"]
WebhookKind = Literal[
    "run.completed",
    "run.failed",
    "run.cancelled",
    "run.interrupted",
    "capacity.regression",
    "capacity.improvement",
    "schedule.missed",
    "schedule.busy",
    "schedule.refused",
]
Instant = Annotated[str, Field(description="RFC 3339, UTC", examples=["2026-01-31T12:00:00.000Z"])]

_RUN_EXAMPLE: JsonDict = {
    "kind": "run",
    "target": {"url": "http://127.0.0.1:8000"},
    "options": {"concurrency": 8, "num_requests": 200, "slo": "ttft=500ms,tpot=50ms"},
    "name": "after the upgrade",
    "labels": {"team": "search"},
}
_EXPERIMENT_EXAMPLE: JsonDict = {
    "name": "does it pay",
    "options": {
        "name": "does it pay",
        "workload": {"synthetic": {"input_tokens": 64, "output_tokens": 32}, "ignore_eos": True},
        "load": {"concurrency": [1, 8]},
        "level": {"num_requests": 50},
        "arms": {"baseline": {"url": "http://127.0.0.1:8000"}, "eagle3": {"url": "http://127.0.0.1:8001"}},
    },
}


class Body(BaseModel):
    """What is sent: a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class View(BaseModel):
    """What is given: clients pass over fields that they do not know."""

    model_config = ConfigDict(frozen=True)


class Target(Body):
    """The server under test: by URL, or by the name of a target in the settings or of a server profile."""

    url: str | None = Field(None, max_length=2000, examples=["http://127.0.0.1:8000"])
    profile: str | None = Field(None, max_length=100)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.url is None) == (self.profile is None):
            raise ValueError("expected one of url and profile")
        return self


class Naming(Body):
    """What people call a run."""

    name: Name | None = None
    labels: Labels = {}
    time_limit_s: float | None = Field(None, gt=0, le=30 * 86400, description="The run is stopped in order after it.")
    baseline_id: Reference | None = Field(None, description="What it is held against, with the gates of that baseline.")

    @model_validator(mode="after")
    def _public(self) -> Self:
        if any(holds_secret(text) for text in (self.name or "", *self.labels.values())):
            raise ValueError("a secret does not belong in a name or a label")
        return self


class RunRequest(Naming):
    """`options` are those of the command of that kind, with underscores; of an experiment, its file."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [_RUN_EXAMPLE]})

    kind: Kind
    target: Target | None = None
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _target_where_needed(self) -> Self:
        if (self.target is None) != (self.kind == "experiment"):
            raise ValueError(
                "expected a target for a run, a sweep or a capacity; an experiment names its servers itself"
            )
        return self


class ExperimentRequest(Naming):
    """An experiment: `options` is what its file would hold, with `url` arms, or simulated ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [_EXPERIMENT_EXAMPLE]})

    options: dict[str, Any]


class RunView(View):
    """A run, and how far it is. `result` has its main figures once it has some; all of them are in the summary."""

    id: str
    kind: Kind
    state: State
    name: str | None
    labels: dict[str, str]
    target: dict[str, str]
    options: dict[str, Any]
    time_limit_s: float | None
    created_by: str
    created_at: Instant
    started_at: Instant | None
    ended_at: Instant | None
    cancel_asked_at: Instant | None
    baseline_id: str | None
    schedule_id: str | None
    reason: str | None = Field(description="Why it did not complete, from a closed set.")
    message: str | None
    exit_code: int | None = Field(description="That of the command line for the same run.")
    valid: bool | None
    gate_failed: bool | None
    result: dict[str, Any] | None
    files_removed: bool
    last_event: int


class Waiting(View):
    """Why a queued run waits: how many are before it, and which runs use or will use its servers first."""

    position: int
    runs: list[str]


class RunDetail(RunView):
    """One run."""

    waiting: Waiting | None
    progress: dict[str, Any] | None = Field(description="The latest progress event, while it is at work.")


class RunPage(View):
    """Some runs, the newest first. `next` is the cursor of the page behind, null at the end."""

    items: list[RunView]
    next: str | None


class EventView(View):
    """One event of a run."""

    id: int
    at: Instant
    kind: str
    data: dict[str, Any]


class ProblemField(View):
    """One field that is wrong."""

    pointer: str
    detail: str


class ProblemView(View):
    """RFC 9457. `type` ends in a word from a closed set."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:loadgen:problem:not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "no such run",
                    "errors": [],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemField] = []


class FileView(View):
    """One file, by its name beneath the folder of results."""

    name: str
    bytes: int


class FileList(View):
    """All files of a run."""

    items: list[FileView]


class KeyLimits(Body):
    """The most load that a key may ask for, within what the settings allow."""

    concurrency: int | None = Field(None, gt=0, le=10**6)
    rate_rps: float | None = Field(None, gt=0, le=10**6)
    run_time_s: float | None = Field(None, gt=0, le=30 * 86400)


class KeyRequest(Body):
    """A key to be made. Scope `read` sees, `run` also starts and stops, `admin` also gives out keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"name": "nightly", "scope": "run"}]}
    )

    name: Name
    scope: Scope = Scope.READ
    expires_in_s: float | None = Field(None, gt=0, le=10 * 366 * 86400)
    limits: KeyLimits | None = None


class KeyMade(View):
    """The key, for this once."""

    id: str
    key: str


class KeyView(View):
    """A key without itself."""

    id: str
    name: str
    scope: Scope
    limits: dict[str, Any]
    created_by: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    used_at: Instant | None


class KeyList(View):
    """All of them."""

    items: list[KeyView]


class SessionRequest(Body):
    """A key."""

    key: str = Field(max_length=300)


class SessionView(View):
    """Who one is. `csrf` goes into the header X-CSRF-Token of every change; `open`: no key is needed."""

    id: str
    name: str
    scopes: list[Scope]
    open: bool
    csrf: str | None
    limits: dict[str, float]


class AuditView(View):
    """One change."""

    id: int
    at: Instant
    actor: str
    address: str | None
    action: str
    subject: str | None
    detail: dict[str, Any]


class AuditPage(View):
    """Some changes. `next` goes into `before` for those behind; null at the end."""

    items: list[AuditView]
    next: int | None


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


class BaselineRequest(Body):
    """A run, a sweep or a capacity that others are held against, and what fails them."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"name": "0.33.0", "run_id": "20260131-120000-000-abcdef", "gates": ["tpot_s.p99 > 1.05x"]}]
        },
    )

    name: Name
    run_id: Reference
    gates: Annotated[list[Annotated[str, StringConstraints(max_length=200)]], Field(max_length=50)] = []


class BaselineView(View):
    """A baseline."""

    id: str
    name: str
    run_id: str
    kind: Kind
    gates: list[str]
    created_by: str
    created_at: Instant


class BaselineList(View):
    """All baselines, by name."""

    items: list[BaselineView]


class WebhookRequest(Body):
    """Who is told of what. The secret, `whsec_…`, is in that environment variable of the service."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "name": "chat",
                    "url": "https://hooks.example.org/loadgen",
                    "secret_env": "LOADGEN_WEBHOOK_SECRET",
                    "kinds": ["capacity.regression", "run.failed"],
                }
            ]
        },
    )

    name: Name
    url: str = Field(max_length=2000)
    secret_env: VariableName
    kinds: Annotated[list[WebhookKind], Field(min_length=1, max_length=20)]
    paused: bool = False


class WebhookView(View):
    """A webhook."""

    id: str
    name: str
    url: str
    secret_env: str
    kinds: list[str]
    paused: bool
    created_by: str
    created_at: Instant


class WebhookList(View):
    """All webhooks, by name."""

    items: list[WebhookView]


class DeliveryView(View):
    """One message to a webhook: waiting, delivered or given_up."""

    id: str
    kind: str
    run_id: str | None
    state: str
    attempts: int
    created_at: Instant
    next_at: Instant | None
    ended_at: Instant | None
    last_error: str | None


class DeliveryList(View):
    """The latest ones."""

    items: list[DeliveryView]


class CapacityPoint(View):
    """One capacity test. `verdict` holds it against those before it.

    An unchanged one would lie in `expected_low` to `expected_high`.
    """

    run_id: str
    at: Instant
    name: str | None
    labels: dict[str, str]
    variable: str
    level: float | None
    low: float | None
    high: float | None
    attainment_ratio: float | None
    requests_per_s: float | None
    output_tokens_per_s: float | None
    valid: bool
    verdict: Literal["too_few", "no_change", "regression", "improvement", "invalid"]
    compared_with: int
    expected: float | None
    expected_low: float | None
    expected_high: float | None
    ratio: float | None


class CapacitySeries(View):
    """Capacity tests of the same server with the same options."""

    series: str
    tests: int
    latest: CapacityPoint
    target: dict[str, str]
    options: dict[str, Any]


class SeriesList(View):
    """All of them, that of the latest test first."""

    items: list[CapacitySeries]


class PointList(View):
    """The results of one, ascending."""

    items: list[CapacityPoint]


class OptionList(View):
    """The options of a kind as JSON schema."""

    kind: Kind
    json_schema: dict[str, Any]


class TargetView(View):
    """A server that runs may name."""

    name: str
    url: str
    source: Literal["settings", "profile"]


class TargetList(View):
    """All of them."""

    items: list[TargetView]
    allowed_hosts: list[str]
