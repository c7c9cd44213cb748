"""API keys: shown once, kept as a digest, limited by scopes, revocable."""

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from loadgen.service.auth.principal import Principal, Scope
from loadgen.service.store.tables import keys, sessions

_SECRET_BYTES = 32
_KEY = re.compile(r"lgk_([0-9a-f]{16})_([A-Za-z0-9_-]{16,200})")


def create(
    connection: Connection,
    name: str,
    scopes: Iterable[Scope],
    *,
    limits: Mapping[str, Any],
    expires_unix_ms: int | None,
    created_by: str,
    at_unix_ms: int,
) -> tuple[str, str]:
    """Its id, and the key itself, which nobody can see again."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(_SECRET_BYTES)
    connection.execute(
        insert(keys).values(
            id=key_id,
            name=name,
            scopes=sorted(scopes),
            digest=digest_of(secret),
            limits=dict(limits),
            created_by=created_by,
            created_unix_ms=at_unix_ms,
            expires_unix_ms=expires_unix_ms,
        )
    )
    return key_id, f"lgk_{key_id}_{secret}"


def plant(connection: Connection, name: str, text: str, at_unix_ms: int) -> bool:
    """Takes a key of all scopes that somebody made elsewhere; False for one that is no key. Once is enough."""
    found = _KEY.fullmatch(text)
    if found is None:
        return False
    key_id, secret = found[1], found[2]
    if connection.execute(select(keys.c.id).where(keys.c.id == key_id)).first() is None:
        connection.execute(
            insert(keys).values(
                id=key_id,
                name=name,
                scopes=[Scope.ADMIN],
                digest=digest_of(secret),
                limits={},
                created_by="settings",
                created_unix_ms=at_unix_ms,
            )
        )
    return True


def made_up() -> str:
    """A key to be planted."""
    return f"lgk_{secrets.token_hex(8)}_{secrets.token_urlsafe(_SECRET_BYTES)}"


def holder(connection: Connection, text: str, at_unix_ms: int) -> Principal | None:
    """Whose key it is; None of one that is unknown, revoked or past its time."""
    found = _KEY.fullmatch(text)
    row = None if found is None else _row(connection, found[1])
    expected = bytes(32) if row is None else row["digest"]
    same = hmac.compare_digest(digest_of("" if found is None else found[2]), expected)
    if row is None or not same or not _is_good(row, at_unix_ms):
        return None
    return principal_of(row)


def note_use(connection: Connection, key_id: str, at_unix_ms: int) -> None:
    """When it was last used, for whoever looks for keys that nobody needs."""
    connection.execute(update(keys).where(keys.c.id == key_id).values(used_unix_ms=at_unix_ms))


def by_id(connection: Connection, key_id: str, at_unix_ms: int) -> Principal | None:
    """The holder of a key that is good."""
    row = _row(connection, key_id)
    return None if row is None or not _is_good(row, at_unix_ms) else principal_of(row)


def principal_of(row: Mapping[str, Any] | RowMapping) -> Principal:
    """Of a row."""
    return Principal(
        id=row["id"], name=row["name"], scopes=frozenset(map(Scope, row["scopes"])), limits=dict(row["limits"])
    )


def any_there(connection: Connection) -> bool:
    """Whether there is, or ever was, a key: from then on one is needed."""
    return connection.execute(select(keys.c.id).limit(1)).first() is not None


def other_admins(connection: Connection, key_id: str, at_unix_ms: int) -> bool:
    """Whether somebody could still give out keys without that one."""
    rows = connection.execute(select(keys).where(keys.c.id != key_id)).mappings()
    return any(Scope.ADMIN in row["scopes"] and _is_good(row, at_unix_ms) for row in rows)


def revoke(connection: Connection, key_id: str, at_unix_ms: int) -> bool:
    """Ends a key and its sessions; False when there is no such key, or it is revoked already."""
    done = connection.execute(
        update(keys).where(keys.c.id == key_id, keys.c.revoked_unix_ms.is_(None)).values(revoked_unix_ms=at_unix_ms)
    )
    connection.execute(sessions.delete().where(sessions.c.key_id == key_id))
    return done.rowcount == 1


def digest_of(secret: str) -> bytes:
    """What is kept of a secret of many random bits."""
    return sha256(secret.encode()).digest()


def _row(connection: Connection, key_id: str) -> RowMapping | None:
    return connection.execute(select(keys).where(keys.c.id == key_id)).mappings().one_or_none()


def _is_good(row: Mapping[str, Any] | RowMapping, at_unix_ms: int) -> bool:
    return row["revoked_unix_ms"] is None and (row["expires_unix_ms"] is None or at_unix_ms < row["expires_unix_ms"])
