"""Requests that are sent twice: with the same key and body they are one."""

import json
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select

from loadgen.service.problems import invalid
from loadgen.service.store.tables import idempotency
from loadgen.service.wire.runs import Naming

REMEMBERED_MS = 7 * 24 * 3600 * 1000


def fingerprint_of(request: Naming) -> str:
    """What tells one body from another."""
    return sha256(json.dumps(request.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()


def asked_before(connection: Connection, principal: str, key: str, fingerprint: str, at_unix_ms: int) -> str | None:
    """The run that was asked for with that key in the week before, None the first time.

    Raises Problem when it was for another body.
    """
    row = connection.execute(
        select(idempotency.c.fingerprint, idempotency.c.resource_id).where(
            idempotency.c.principal == principal,
            idempotency.c.idempotency_key == key,
            idempotency.c.created_unix_ms >= at_unix_ms - REMEMBERED_MS,
        )
    ).one_or_none()
    if row is None:
        return None
    if row.fingerprint != fingerprint:
        raise invalid("Idempotency-Key: was used for another request")
    return str(row.resource_id)


def remember(connection: Connection, principal: str, key: str, fingerprint: str, run_id: str, at_unix_ms: int) -> None:
    """For a week."""
    connection.execute(delete(idempotency).where(idempotency.c.created_unix_ms < at_unix_ms - REMEMBERED_MS))
    connection.execute(
        insert(idempotency).values(
            principal=principal,
            idempotency_key=key,
            fingerprint=fingerprint,
            resource_id=run_id,
            created_unix_ms=at_unix_ms,
        )
    )
