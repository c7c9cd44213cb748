"""Webhooks and their messages."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from loadgen.options.fields import VariableName
from loadgen.service.wire.common import Body, Instant, Name, View

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


Url = Annotated[str, Field(max_length=2000)]
Kinds = Annotated[list[WebhookKind], Field(min_length=1, max_length=20)]


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
    url: Url
    secret_env: VariableName
    kinds: Kinds
    paused: bool = False


class WebhookChange(Body):
    """What becomes different; the rest stays."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {"url": "https://hooks.example.org/other", "kinds": ["run.failed", "run.interrupted"]},
                {"paused": True},
            ]
        },
    )

    url: Url | None = None
    kinds: Kinds | None = None
    paused: bool | None = None


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
