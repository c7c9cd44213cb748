"""What routes share: the services, who asks, and how problems are documented."""

from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request

from loadgen.service.admission.limits import Limits
from loadgen.service.auth.door import Knock
from loadgen.service.auth.principal import Principal, Scope
from loadgen.service.auth.sessions import COOKIE
from loadgen.service.services import Services
from loadgen.service.wire.common import ProblemView

PROBLEM_TYPE = "application/problem+json"
PROBLEM_SCHEMA = {"$ref": f"#/components/schemas/{ProblemView.__name__}"}
_WORDS = {
    400: "The request is no proper one.",
    401: "A key is needed, or this one is not good.",
    403: "Well said, and not allowed.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    409: "Not in the state that it is in.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "A field or a parameter is wrong.",
    429: "Too many wrong keys from this address, or too many runs that wait.",
    500: "A fault of the service.",
    503: "Not now: many others ask, or the database does not answer.",
}
_ALWAYS = (400, 401, 403, 408, 413, 415, 422, 429, 503)

MOST_ITEMS = 200

NO_BODY: dict[int | str, dict[str, Any]] = {204: {"description": "Done."}}


def problems(*more: int) -> dict[int | str, dict[str, Any]]:
    """Every problem that a route may answer with."""
    return {
        status: {"description": _WORDS[status], "content": {PROBLEM_TYPE: {"schema": PROBLEM_SCHEMA}}}
        for status in sorted({*_ALWAYS, *more})
    }


def services_of(request: Request) -> Services:
    """The services of the application."""
    services: Services = request.app.state.services
    return services


Parts = Annotated[Services, Depends(services_of)]


def knock_of(request: Request) -> Knock:
    """The request as the door sees it."""
    return Knock(
        method=request.method,
        address=request.client.host if request.client else "unknown",
        headers={name.lower(): value for name, value in request.headers.items()},
        cookie=request.cookies.get(COOKIE),
    )


def _let_in(scope: Scope) -> Any:
    def principal(request: Request, parts: Parts) -> Principal:
        return parts.door.let_in(knock_of(request), scope)

    return Depends(principal)


Reader = Annotated[Principal, _let_in(Scope.READ)]
Runner = Annotated[Principal, _let_in(Scope.RUN)]
Admin = Annotated[Principal, _let_in(Scope.ADMIN)]

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="Most items of a page.")]
Cursor = Annotated[
    str | None, Query(pattern=r"^[A-Za-z0-9-]{1,64}$", description="`next` of the page before this one.")
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Asked again with the same key and body within a week, this answers with the same run.",
    ),
]


def limits_of(parts: Services, principal: Principal) -> Limits:
    """The most load that this one may ask for."""
    return parts.policy.limits.narrowed(principal.limits)
