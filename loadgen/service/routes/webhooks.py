"""Webhooks: who is told of what, and what was delivered."""

from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request

from loadgen.core.errors import ConfigError
from loadgen.service.auth.audit import Action
from loadgen.service.clock import rfc3339
from loadgen.service.problems import FieldProblem, conflict, invalid, not_found, refused
from loadgen.service.routes.changes import found, note
from loadgen.service.routes.common import NO_BODY, Admin, Id, Limit, Parts, problems
from loadgen.service.services import Services
from loadgen.service.store import named
from loadgen.service.store.tables import webhooks
from loadgen.service.webhooks import outbox
from loadgen.service.webhooks.courier import check_receiver
from loadgen.service.wire.webhooks import (
    DeliveryList,
    DeliveryView,
    WebhookChange,
    WebhookList,
    WebhookRequest,
    WebhookView,
)

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])


@router.post("", status_code=201, responses=problems(409))
def make_webhook(body: WebhookRequest, request: Request, parts: Parts, who: Admin) -> WebhookView:
    """Makes a webhook. Its host has to be one that the settings allow (--webhook-host)."""
    _check(body.url, body.secret_env, parts)
    values = {**body.model_dump(), "id": uuid4().hex[:16], "created_by": who.id}
    with parts.database.write() as connection:
        if not named.add(connection, webhooks, **values, created_unix_ms=parts.clock.now_unix_ms()):
            raise conflict("a webhook of this name is there already")
        note(connection, request, who, Action.WEBHOOK_MAKE, values["id"], name=body.name)
    return _view(found(parts, webhooks, values["id"], "webhook"))


@router.get("", responses=problems())
def list_webhooks(parts: Parts, _who: Admin) -> WebhookList:
    """All webhooks, by name."""
    with parts.database.read() as connection:
        return WebhookList(items=[_view(row) for row in named.every(connection, webhooks)])


@router.get("/{webhook_id}", responses=problems(404))
def show_webhook(webhook_id: Id, parts: Parts, _who: Admin) -> WebhookView:
    """One webhook."""
    return _view(found(parts, webhooks, webhook_id, "webhook"))


@router.patch("/{webhook_id}", responses=problems(404))
def change_webhook(webhook_id: Id, body: WebhookChange, request: Request, parts: Parts, who: Admin) -> WebhookView:
    """Changes what is given. A paused one is told nothing; once it goes on it gets the messages that waited before.

    What is delivered is held against the settings as a new webhook is; one that is not allowed any more can be paused.
    """
    before = found(parts, webhooks, webhook_id, "webhook")
    changes = body.model_dump(exclude_none=True)
    after = before | changes
    if "url" in changes or not after["paused"]:
        _check(after["url"], after["secret_env"], parts)
    if changes:
        with parts.database.write() as connection:
            named.change(connection, webhooks, webhook_id, **changes)
            detail = {"name": after["name"], "changed": sorted(changes), "paused": after["paused"]}
            note(connection, request, who, Action.WEBHOOK_CHANGE, webhook_id, **detail)
        parts.hub.tell()
    return _view(found(parts, webhooks, webhook_id, "webhook"))


@router.delete("/{webhook_id}", status_code=204, responses={**NO_BODY, **problems(404)})
def remove_webhook(webhook_id: Id, request: Request, parts: Parts, who: Admin) -> None:
    """Removes it, with what was to be delivered."""
    with parts.database.write() as connection:
        if not named.remove(connection, webhooks, webhook_id):
            raise not_found("webhook")
        note(connection, request, who, Action.WEBHOOK_REMOVE, webhook_id)


@router.get("/{webhook_id}/deliveries", responses=problems(404))
def list_deliveries(webhook_id: Id, parts: Parts, _who: Admin, limit: Limit = 50) -> DeliveryList:
    """Its latest messages."""
    found(parts, webhooks, webhook_id, "webhook")
    with parts.database.read() as connection:
        rows = outbox.latest(connection, webhook_id, limit)
    return DeliveryList(
        items=[
            DeliveryView.of(
                row,
                created_at=rfc3339(row["created_unix_ms"]) or "",
                next_at=rfc3339(row["next_unix_ms"]),
                ended_at=rfc3339(row["ended_unix_ms"]),
            )
            for row in rows
        ]
    )


def _check(url: str, secret_env: str, parts: Services) -> None:
    try:
        check_receiver(url, parts.receivers, parts.policy.resolve)
    except PermissionError as error:
        raise refused(str(error), FieldProblem(pointer="/url", detail=str(error))) from None
    except ConfigError as error:
        raise invalid(str(error), FieldProblem(pointer="/url", detail=str(error))) from None
    if secret_env not in parts.policy.environment:
        detail = "is not one of the variables that may be named (--allow-env)"
        raise refused("the secret's variable is not allowed", FieldProblem(pointer="/secret_env", detail=detail))


def _view(row: dict[str, Any]) -> WebhookView:
    return WebhookView.of(row, created_at=rfc3339(row["created_unix_ms"]) or "")
