"""Lets a request in: by key, by a browser's session, or because only this machine can reach the service."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from loadgen.service.admission.addresses import literal_address
from loadgen.service.auth import keys, sessions
from loadgen.service.auth.failures import Failures
from loadgen.service.auth.principal import ANYBODY, Principal, Scope
from loadgen.service.clock import Clock
from loadgen.service.problems import Problem, refused
from loadgen.service.store.database import Database

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = "bearer "
_NOTED_EVERY_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """What a request says of itself. `headers` have small names."""

    method: str
    address: str
    headers: Mapping[str, str]
    cookie: str | None


class Door:
    """One for a service. `beyond`: other machines can reach it, so that a key is always needed."""

    def __init__(self, database: Database, clock: Clock, *, beyond: bool, public_hosts: frozenset[str]) -> None:
        self._database, self._clock, self._beyond, self._public = database, clock, beyond, public_hosts
        self._failures = Failures(clock)
        self._used: dict[str, int] = {}

    def let_in(self, knock: Knock, scope: Scope) -> Principal:
        """Who it is. Raises Problem for nobody, for a forged request, and for a scope that is lacking."""
        principal = self.who(knock)
        if not principal.may(scope):
            raise refused(f"this key has not the scope {scope}")
        return principal

    def who(self, knock: Knock) -> Principal:
        """Who it is. Raises Problem."""
        self.check_site(knock)
        authorization = knock.headers.get("authorization")
        if authorization is not None:
            scheme, text = authorization[: len(_BEARER)].lower(), authorization[len(_BEARER) :].strip()
            return self.by_key(text if scheme == _BEARER else "", knock.address)
        now = self._clock.now_unix_ms()
        with self._database.read() as connection:
            found = None if knock.cookie is None else sessions.find_session(connection, knock.cookie, now)
            needed = self._beyond or keys.any_there(connection)
        if found is not None:
            assert knock.cookie is not None
            if knock.method not in _SAFE and not sessions.is_csrf(knock.cookie, knock.headers.get("x-csrf-token")):
                raise refused(f"a change from the page needs the header {sessions.CSRF_HEADER}")
            return found
        if needed:
            raise _unauthorized("a key is needed: Authorization: Bearer lgk_…")
        return ANYBODY

    def by_key(self, text: str, address: str) -> Principal:
        """Whose key it is. Raises Problem, also for an address that was wrong too often."""
        wait_s = self._failures.wait_s(address)
        if wait_s > 0:
            raise Problem(
                status=HTTPStatus.TOO_MANY_REQUESTS,
                kind="too-many-failures",
                detail="too many wrong keys from this address",
                headers={"Retry-After": str(int(wait_s) + 1)},
            )
        now = self._clock.now_unix_ms()
        with self._database.read() as connection:
            principal = keys.holder(connection, text, now)
        if principal is None:
            self._failures.note(address)
            raise _unauthorized("this key is not known, or not good any more")
        if now - self._used.get(principal.id, 0) > _NOTED_EVERY_MS:
            self._used[principal.id] = now
            with self._database.write() as connection:
                keys.note_use(connection, principal.id, now)
        return principal

    def check_site(self, knock: Knock) -> None:
        """Refuses what a page of another site made a browser send, and names that were bent to mean this machine."""
        host = knock.headers.get("host", "")
        name = (_parts(f"//{host}").hostname or "").rstrip(".")
        known = literal_address(name) is not None or name == "localhost" or not self._public.isdisjoint({name, host})
        if not known and (not self._beyond or self._public):
            raise refused("the service is not reached by this name (--public-host)")
        if knock.method in _SAFE:
            return
        origin = knock.headers.get("origin")
        if origin is not None and _parts(origin).netloc not in {host, *self._public}:
            raise refused("a request of another site")
        if knock.headers.get("sec-fetch-site") == "cross-site":
            raise refused("a request of another site")


def _parts(url: str) -> SplitResult:
    """Of what a header says; of what is no URL nothing."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _unauthorized(detail: str) -> Problem:
    return Problem(
        status=HTTPStatus.UNAUTHORIZED,
        kind="unauthorized",
        detail=detail,
        headers={"WWW-Authenticate": 'Bearer realm="loadgen"'},
    )
