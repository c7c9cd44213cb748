"""What is to be told, in the database: written with what happened, taken out when it was delivered or given up."""

from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, delete, insert, select, update

from loadgen.service.clock import Clock
from loadgen.service.jobs.order import Outcome
from loadgen.service.store.tables import deliveries, webhooks

WAITING, DELIVERED, GIVEN_UP = "waiting", "delivered", "given_up"
RETRY_S = (5.0, 30.0, 300.0, 1800.0, 7200.0, 21600.0)
"""Pauses between attempts; after the last one it is given up."""

CLAIM_S = 120.0
"""For so long a message is one service's to deliver; where that one is lost meanwhile, it is due again then."""

_KEPT_MS = 30 * 24 * 3600 * 1000


class Outbox:
    """Writes messages, within transactions of others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def announce(self, connection: Connection, kind: str, facts: dict[str, Any]) -> None:
        """For every webhook that wants this kind."""
        now = self._clock.now_unix_ms()
        wanted = connection.execute(select(webhooks.c.id, webhooks.c.kinds).where(webhooks.c.paused.is_(False))).all()
        for webhook_id, kinds in wanted:
            if kind in kinds:
                connection.execute(
                    insert(deliveries).values(
                        id=f"msg_{uuid4().hex}",
                        webhook_id=webhook_id,
                        run_id=facts.get("run_id"),
                        kind=kind,
                        body={"type": kind, "at_unix_ms": now, "data": facts},
                        state=WAITING,
                        attempts=0,
                        created_unix_ms=now,
                        next_unix_ms=now,
                    )
                )

    def follow(self, connection: Connection, run: dict[str, Any], _outcome: Outcome | None, _at_unix_ms: int) -> None:
        """A run has ended; see `jobs.ending.Follow`."""
        names = ("id", "kind", "name", "state", "reason", "message", "exit_code", "valid", "gate_failed", "schedule_id")
        facts = {name: run[name] for name in names}
        facts["run_id"] = facts.pop("id")
        self.announce(connection, f"run.{run['state']}", facts)


def due(connection: Connection, now_unix_ms: int, limit: int) -> list[dict[str, Any]]:
    """Messages whose time has come, each with where it goes."""
    found = connection.execute(
        select(deliveries, webhooks.c.url, webhooks.c.secret_env)
        .join(webhooks, webhooks.c.id == deliveries.c.webhook_id)
        .where(deliveries.c.state == WAITING, deliveries.c.next_unix_ms <= now_unix_ms, webhooks.c.paused.is_(False))
        .order_by(deliveries.c.next_unix_ms)
        .limit(limit)
    )
    return [dict(row) for row in found.mappings()]


def claim(connection: Connection, message: dict[str, Any], now_unix_ms: int) -> bool:
    """Takes a message that is due to deliver it; False when another service was faster."""
    done = connection.execute(
        update(deliveries)
        .where(
            deliveries.c.id == message["id"],
            deliveries.c.state == WAITING,
            deliveries.c.next_unix_ms == message["next_unix_ms"],
        )
        .values(next_unix_ms=now_unix_ms + int(CLAIM_S * 1000))
    )
    return done.rowcount == 1


def note(connection: Connection, message: dict[str, Any], now_unix_ms: int, error: str | None) -> None:
    """How an attempt ended: delivered, or to be tried again later, or given up."""
    attempts = message["attempts"] + 1
    if error is None:
        state, later = DELIVERED, None
    elif attempts > len(RETRY_S):
        state, later = GIVEN_UP, None
    else:
        state, later = WAITING, now_unix_ms + int(RETRY_S[attempts - 1] * 1000)
    connection.execute(
        update(deliveries)
        .where(deliveries.c.id == message["id"])
        .values(
            state=state,
            attempts=attempts,
            next_unix_ms=later,
            ended_unix_ms=None if state == WAITING else now_unix_ms,
            last_error=error,
        )
    )


def latest(connection: Connection, webhook_id: str, limit: int) -> list[dict[str, Any]]:
    """The latest messages of a webhook, the newest first."""
    found = connection.execute(
        select(deliveries)
        .where(deliveries.c.webhook_id == webhook_id)
        .order_by(deliveries.c.created_unix_ms.desc())
        .limit(limit)
    )
    return [dict(row) for row in found.mappings()]


def forget_old(connection: Connection, now_unix_ms: int) -> None:
    """Removes what was settled long ago."""
    connection.execute(delete(deliveries).where(deliveries.c.ended_unix_ms < now_unix_ms - _KEPT_MS))
