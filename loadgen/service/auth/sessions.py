"""Sessions of browsers: a cookie that scripts cannot read, and a second word that other sites cannot know."""

import hmac
import secrets
from hashlib import sha256

from sqlalchemy import Connection, delete, insert, select

from loadgen.service.auth.keys import by_id, digest_of
from loadgen.service.auth.principal import Principal
from loadgen.service.store.tables import sessions

COOKIE = "loadgen_session"
CSRF_HEADER = "X-CSRF-Token"
LASTS_S = 12 * 3600
_BYTES = 32


def open_session(connection: Connection, key_id: str, at_unix_ms: int) -> str:
    """Begins a session, and clears those that are over. Returns the cookie."""
    cookie = secrets.token_urlsafe(_BYTES)
    connection.execute(delete(sessions).where(sessions.c.expires_unix_ms <= at_unix_ms))
    connection.execute(
        insert(sessions).values(
            digest=digest_of(cookie),
            key_id=key_id,
            created_unix_ms=at_unix_ms,
            expires_unix_ms=at_unix_ms + LASTS_S * 1000,
        )
    )
    return cookie


def find_session(connection: Connection, cookie: str, at_unix_ms: int) -> Principal | None:
    """Whose session it is; None when it is over."""
    row = (
        connection.execute(
            select(sessions).where(sessions.c.digest == digest_of(cookie), sessions.c.expires_unix_ms > at_unix_ms)
        )
        .mappings()
        .one_or_none()
    )
    return None if row is None else by_id(connection, row["key_id"], at_unix_ms)


def csrf_of(cookie: str) -> str:
    """The second word of a session: only who can read an answer of the service knows it, never who only sends."""
    return hmac.new(cookie.encode(), b"csrf", sha256).hexdigest()


def is_csrf(cookie: str, told: str | None) -> bool:
    """Whether that is the session's second word."""
    return told is not None and hmac.compare_digest(told.encode(), csrf_of(cookie).encode())


def close_session(connection: Connection, cookie: str) -> None:
    """Ends it."""
    connection.execute(delete(sessions).where(sessions.c.digest == digest_of(cookie)))
