"""Keys, sessions of browsers, and what was changed by whom."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select

from loadgen.service.auth import audit, keys, sessions
from loadgen.service.auth.audit import Action
from loadgen.service.auth.principal import ANYBODY, Principal, Scope
from loadgen.service.clock import rfc3339
from loadgen.service.problems import conflict, not_found
from loadgen.service.routes.changes import note
from loadgen.service.routes.common import NO_BODY, Admin, Id, Limit, Parts, Reader, knock_of, limits_of, problems
from loadgen.service.services import Services
from loadgen.service.store.tables import keys as table
from loadgen.service.wire.keys import (
    AuditPage,
    AuditView,
    KeyList,
    KeyMade,
    KeyRequest,
    KeyView,
    SessionRequest,
    SessionView,
)

router = APIRouter(prefix="/v1", tags=["keys"])


@router.post("/keys", status_code=201, responses=problems(409))
def make_key(body: KeyRequest, request: Request, parts: Parts, who: Admin) -> KeyMade:
    """Makes a key. It is shown here and nowhere else again. The first one has the scope `admin`."""
    now = parts.clock.now_unix_ms()
    expires = None if body.expires_in_s is None else now + int(body.expires_in_s * 1000)
    limits = {} if body.limits is None else body.limits.model_dump(exclude_none=True)
    with parts.database.write() as connection:
        if body.scope is not Scope.ADMIN and not keys.any_there(connection):
            raise conflict("nobody could make keys any more: make one of scope admin first")
        key_id, key = keys.create(
            connection,
            body.name,
            [body.scope],
            limits=limits,
            expires_unix_ms=expires,
            created_by=who.id,
            at_unix_ms=now,
        )
        note(connection, request, who, Action.KEY_MAKE, key_id, name=body.name, scope=body.scope)
    return KeyMade(id=key_id, key=key)


@router.get("/keys", responses=problems())
def list_keys(parts: Parts, _who: Admin) -> KeyList:
    """All keys, those that are not good any more as well."""
    with parts.database.read() as connection:
        rows = connection.execute(select(table).order_by(table.c.created_unix_ms.desc())).mappings().all()
    return KeyList(
        items=[
            KeyView(
                id=row["id"],
                name=row["name"],
                scope=row["scopes"][0],
                limits=row["limits"],
                created_by=row["created_by"],
                created_at=rfc3339(row["created_unix_ms"]) or "",
                expires_at=rfc3339(row["expires_unix_ms"]),
                revoked_at=rfc3339(row["revoked_unix_ms"]),
                used_at=rfc3339(row["used_unix_ms"]),
            )
            for row in rows
        ]
    )


@router.delete("/keys/{key_id}", status_code=204, responses={**NO_BODY, **problems(404, 409)})
def revoke_key(key_id: Id, request: Request, parts: Parts, who: Admin) -> None:
    """Ends a key, and every session that was opened with it. The last one of scope `admin` stays."""
    now = parts.clock.now_unix_ms()
    with parts.database.write() as connection:
        if keys.by_id(connection, key_id, now) is not None and not keys.other_admins(connection, key_id, now):
            raise conflict("nobody could make keys any more: make another one of scope admin first")
        if not keys.revoke(connection, key_id, now):
            raise not_found("key")
        note(connection, request, who, Action.KEY_REVOKE, key_id)


@router.post("/session", status_code=201, responses=problems())
def open_session(body: SessionRequest, request: Request, response: Response, parts: Parts) -> SessionView:
    """Opens a session for a browser with a key, which the browser need not keep."""
    knock = knock_of(request)
    parts.door.check_site(knock)
    principal = parts.door.by_key(body.key, knock.address)
    now = parts.clock.now_unix_ms()
    with parts.database.write() as connection:
        cookie = sessions.open_session(connection, principal.id, now)
        note(connection, request, principal, Action.SESSION_OPEN)
    response.set_cookie(
        sessions.COOKIE,
        cookie,
        max_age=sessions.LASTS_S,
        httponly=True,
        samesite="strict",
        secure=parts.options.secure_cookies,
        path="/",
    )
    return session_view(parts, principal, cookie)


@router.get("/session", responses=problems())
def show_session(request: Request, parts: Parts, who: Reader) -> SessionView:
    """Who one is, and what one may do."""
    return session_view(parts, who, knock_of(request).cookie)


@router.delete("/session", status_code=204, responses={**NO_BODY, **problems()})
def close_session(request: Request, response: Response, parts: Parts, _who: Reader) -> None:
    """Ends the session."""
    cookie = knock_of(request).cookie
    if cookie is not None:
        with parts.database.write() as connection:
            sessions.close_session(connection, cookie)
    response.delete_cookie(sessions.COOKIE, path="/")


@router.get("/audit", responses=problems())
def list_audit(
    parts: Parts,
    _who: Admin,
    action: Annotated[Action | None, Query(description="Changes of this kind alone.")] = None,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="`next` of the page before this one.")] = None,
    limit: Limit = 100,
) -> AuditPage:
    """What was changed by whom, the newest first."""
    with parts.database.read() as connection:
        rows, behind = audit.page(connection, action=action, before=before, limit=limit)
    return AuditPage(items=[AuditView.of(row, at=rfc3339(row["at_unix_ms"]) or "") for row in rows], next=behind)


def session_view(parts: Services, principal: Principal, cookie: str | None) -> SessionView:
    """What whoever this is may know of themselves."""
    limits = limits_of(parts, principal)
    return SessionView(
        id=principal.id,
        name=principal.name,
        scopes=[scope for scope in Scope if principal.may(scope)],
        open=principal is ANYBODY,
        csrf=None if cookie is None else sessions.csrf_of(cookie),
        limits={"concurrency": limits.concurrency, "rate_rps": limits.rate_rps, "run_time_s": limits.run_time_s},
    )
