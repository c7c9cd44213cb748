"""What is wrong with a request, as an answer can say it: RFC 9457."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldProblem:
    """One field of a body, by JSON pointer, and what was expected there."""

    pointer: str
    detail: str


@dataclass(kw_only=True)
class Problem(Exception):  # noqa: N818 (the name of the standard's)
    """Raised wherever a request cannot be served. `kind` is from a closed set, told in docs/service.md."""

    status: HTTPStatus
    kind: str
    detail: str
    errors: Sequence[FieldProblem] = ()
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail


def invalid(detail: str, *errors: FieldProblem) -> Problem:
    """A body or a parameter that says something wrong."""
    return Problem(status=HTTPStatus.UNPROCESSABLE_ENTITY, kind="invalid-request", detail=detail, errors=errors)


def refused(detail: str, *errors: FieldProblem) -> Problem:
    """What is well said and not allowed here."""
    return Problem(status=HTTPStatus.FORBIDDEN, kind="not-allowed", detail=detail, errors=errors)


def not_found(what: str) -> Problem:
    """Nothing of that name."""
    return Problem(status=HTTPStatus.NOT_FOUND, kind="not-found", detail=f"no such {what}")


def busy(detail: str, *, again_in_s: int) -> Problem:
    """What can be later, without anything else being changed."""
    headers = {"Retry-After": str(again_in_s)}
    return Problem(status=HTTPStatus.SERVICE_UNAVAILABLE, kind="not-ready", detail=detail, headers=headers)


def queue_full(most: int, *, again_in_s: int) -> Problem:
    """One run more than may wait."""
    return Problem(
        status=HTTPStatus.TOO_MANY_REQUESTS,
        kind="queue-full",
        detail=f"{most} runs wait already, and no more may (--max-queued)",
        headers={"Retry-After": str(again_in_s)},
    )


def conflict(detail: str) -> Problem:
    """What cannot be now."""
    return Problem(status=HTTPStatus.CONFLICT, kind="conflict", detail=detail)
