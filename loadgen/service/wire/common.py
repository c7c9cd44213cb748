"""What bodies and answers are made of."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
Reference = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")]
LabelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,62}$")]
LabelValue = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Labels = Annotated[dict[LabelName, LabelValue], Field(max_length=32)]
Kind = Literal["run", "sweep", "capacity", "experiment"]
Instant = Annotated[str, Field(description="RFC 3339, UTC", examples=["2026-01-31T12:00:00.000Z"])]


class Body(BaseModel):
    """What is sent: a field that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class View(BaseModel):
    """What is given: clients pass over fields that they do not know."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def of(cls, row: Mapping[str, Any], **more: Any) -> Self:
        """Of the columns that bear the names of fields, and of what the row has in another form."""
        return cls(**{name: row[name] for name in cls.model_fields if name in row and name not in more}, **more)


class ProblemField(View):
    """One field that is wrong."""

    pointer: str
    detail: str


class ProblemView(View):
    """RFC 9457. `type` ends in a word from a closed set."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:loadgen:problem:not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "no such run",
                    "errors": [],
                }
            ]
        }
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[ProblemField] = []
