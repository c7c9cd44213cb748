"""Sessions of browsers: a cookie that scripts cannot read, and a second word that other sites cannot know."""

import hmac
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from loadgen.service.auth.keys import by_id, digest_of
from loadgen.service.auth.principal import Principal
from loadgen.service.store.tables import sessions

COOKIE = "loadgen_session"
CSRF_HEADER = "X-CSRF-Token"
LASTS_S = 12 * 3600
_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What the browser is given."""

    cookie: str
    csrf: str


def open_session(connection: Connection, key_id: str, at_unix_ms: int) -> Opened:
    """Begins a session, and clears those that are over."""
    opened = Opened(cookie=secrets.token_urlsafe(_BYTES), csrf=secrets.token_urlsafe(_BYTES))
    connection.execute(delete(sessions).where(sessions.c.expires_unix_ms <= at_unix_ms))
    connection.execute(
        insert(sessions).values(
            digest=digest_of(opened.cookie),
            key_id=key_id,
            csrf_digest=digest_of(opened.csrf),
            created_unix_ms=at_unix_ms,
            expires_unix_ms=at_unix_ms + LASTS_S * 1000,
        )
    )
    return opened


def find_session(connection: Connection, cookie: str, at_unix_ms: int) -> tuple[Principal, bytes] | None:
    """Whose session it is and the digest of its second word; None when it is over."""
    row = (
        connection.execute(
            select(sessions).where(sessions.c.digest == digest_of(cookie), sessions.c.expires_unix_ms > at_unix_ms)
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        return None
    principal = by_id(connection, row["key_id"], at_unix_ms)
    return None if principal is None else (principal, row["csrf_digest"])


def renew_csrf(connection: Connection, cookie: str) -> str:
    """A new second word, for a page that was loaded again and does not know it any more."""
    csrf = secrets.token_urlsafe(_BYTES)
    connection.execute(
        update(sessions).where(sessions.c.digest == digest_of(cookie)).values(csrf_digest=digest_of(csrf))
    )
    return csrf


def is_csrf(digest: bytes, told: str | None) -> bool:
    """Whether that is the session's second word."""
    return told is not None and hmac.compare_digest(digest_of(told), digest)


def close_session(connection: Connection, cookie: str) -> None:
    """Ends it."""
    connection.execute(delete(sessions).where(sessions.c.digest == digest_of(cookie)))
