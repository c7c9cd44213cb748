"""Webhooks: who is told of what, and what was delivered."""

from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from loadgen.core.errors import ConfigError
from loadgen.service.auth import audit
from loadgen.service.clock import rfc3339
from loadgen.service.problems import FieldProblem, conflict, invalid, not_found, refused
from loadgen.service.routes.common import NO_BODY, Admin, Id, Limit, Parts, knock_of, problems
from loadgen.service.services import Services
from loadgen.service.store.tables import deliveries, webhooks
from loadgen.service.webhooks.courier import check_receiver
from loadgen.service.wire.webhooks import DeliveryList, DeliveryView, WebhookList, WebhookRequest, WebhookView

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"])


@router.post("", status_code=201, responses=problems(409))
def make_webhook(body: WebhookRequest, request: Request, parts: Parts, who: Admin) -> WebhookView:
    """Makes a webhook. Its host has to be one that the settings allow (--webhook-host)."""
    try:
        check_receiver(body.url, parts.receivers, parts.policy.resolve)
    except PermissionError as error:
        raise refused(str(error), FieldProblem(pointer="/url", detail=str(error))) from None
    except ConfigError as error:
        raise invalid(str(error), FieldProblem(pointer="/url", detail=str(error))) from None
    if body.secret_env not in parts.policy.environment:
        detail = "is not one of the variables that may be named (--allow-env)"
        raise refused("the secret's variable is not allowed", FieldProblem(pointer="/secret_env", detail=detail))
    webhook_id, now = uuid4().hex[:16], parts.clock.now_unix_ms()
    try:
        with parts.database.write() as connection:
            connection.execute(
                insert(webhooks).values(id=webhook_id, created_by=who.id, created_unix_ms=now, **body.model_dump())
            )
            audit.note(
                connection,
                now,
                actor=who.id,
                action="webhook.make",
                subject=webhook_id,
                address=knock_of(request).address,
                name=body.name,
            )
    except IntegrityError:
        raise conflict("a webhook of this name is there already") from None
    return _view(_found(parts, webhook_id))


@router.get("", responses=problems())
def list_webhooks(parts: Parts, _who: Admin) -> WebhookList:
    """All webhooks, by name."""
    with parts.database.read() as connection:
        rows = connection.execute(select(webhooks).order_by(webhooks.c.name)).mappings().all()
    return WebhookList(items=[_view(dict(row)) for row in rows])


@router.delete("/{webhook_id}", status_code=204, responses={**NO_BODY, **problems(404)})
def remove_webhook(webhook_id: Id, request: Request, parts: Parts, who: Admin) -> None:
    """Removes it, with what was to be delivered."""
    now = parts.clock.now_unix_ms()
    with parts.database.write() as connection:
        if connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id)).rowcount == 0:
            raise not_found("webhook")
        audit.note(
            connection,
            now,
            actor=who.id,
            action="webhook.remove",
            subject=webhook_id,
            address=knock_of(request).address,
        )


@router.get("/{webhook_id}/deliveries", responses=problems(404))
def list_deliveries(webhook_id: Id, parts: Parts, _who: Admin, limit: Limit = 50) -> DeliveryList:
    """Its latest messages."""
    _found(parts, webhook_id)
    with parts.database.read() as connection:
        rows = (
            connection.execute(
                select(deliveries)
                .where(deliveries.c.webhook_id == webhook_id)
                .order_by(deliveries.c.created_unix_ms.desc())
                .limit(limit)
            )
            .mappings()
            .all()
        )
    return DeliveryList(
        items=[
            DeliveryView(
                **{name: row[name] for name in DeliveryView.model_fields if name in row},
                created_at=rfc3339(row["created_unix_ms"]) or "",
                next_at=rfc3339(row["next_unix_ms"]),
                ended_at=rfc3339(row["ended_unix_ms"]),
            )
            for row in rows
        ]
    )


def _found(parts: Services, webhook_id: str) -> dict[str, Any]:
    with parts.database.read() as connection:
        row = connection.execute(select(webhooks).where(webhooks.c.id == webhook_id)).mappings().one_or_none()
    if row is None:
        raise not_found("webhook")
    return dict(row)


def _view(row: dict[str, Any]) -> WebhookView:
    shown = {name: row[name] for name in WebhookView.model_fields if name in row}
    return WebhookView(**shown, created_at=rfc3339(row["created_unix_ms"]) or "")
