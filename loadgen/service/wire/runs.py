"""Runs: asked for, shown, followed."""

from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.config import JsonDict

from loadgen.core.redaction import holds_secret
from loadgen.options.fields import StrictJson
from loadgen.service.jobs.states import State
from loadgen.service.wire.common import Body, Instant, Kind, Labels, Name, Reference, View

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
    labels: Labels = Field(default_factory=dict)
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
    options: StrictJson = Field(default_factory=dict)

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

    options: StrictJson


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
