"""Keys, sessions, and what was changed."""

from typing import Any

from pydantic import ConfigDict, Field

from loadgen.service.auth.principal import Scope
from loadgen.service.wire.common import Body, Instant, Name, View


class KeyLimits(Body):
    """The most load that a key may ask for, within what the settings allow."""

    concurrency: int | None = Field(None, gt=0, le=10**6)
    rate_rps: float | None = Field(None, gt=0, le=10**6)
    run_time_s: float | None = Field(None, gt=0, le=30 * 86400)


class KeyRequest(Body):
    """A key to be made. Scope `read` sees, `run` also starts and stops, `admin` also gives out keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, json_schema_extra={"examples": [{"name": "nightly", "scope": "run"}]}
    )

    name: Name
    scope: Scope = Scope.READ
    expires_in_s: float | None = Field(None, gt=0, le=10 * 366 * 86400)
    limits: KeyLimits | None = None


class KeyMade(View):
    """The key, for this once."""

    id: str
    key: str


class KeyView(View):
    """A key without itself."""

    id: str
    name: str
    scope: Scope
    limits: dict[str, Any]
    created_by: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None
    used_at: Instant | None


class KeyList(View):
    """All of them."""

    items: list[KeyView]


class SessionRequest(Body):
    """A key."""

    key: str = Field(max_length=300)


class SessionView(View):
    """Who one is. `csrf` goes into the header X-CSRF-Token of every change; `open`: no key is needed."""

    id: str
    name: str
    scopes: list[Scope]
    open: bool
    csrf: str | None
    limits: dict[str, float]


class AuditView(View):
    """One change."""

    id: int
    at: Instant
    actor: str
    address: str | None
    action: str
    subject: str | None
    detail: dict[str, Any]


class AuditPage(View):
    """Some changes. `next` goes into `before` for those behind; null at the end."""

    items: list[AuditView]
    next: int | None
