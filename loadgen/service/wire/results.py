"""Files of a run, and baselines."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from loadgen.service.wire.common import Body, Instant, Kind, Name, Reference, View


class FileView(View):
    """One file, by its name beneath the folder of results."""

    name: str
    bytes: int


class FileList(View):
    """All files of a run."""

    items: list[FileView]


class BaselineRequest(Body):
    """A run, a sweep or a capacity that others are held against, and what fails them."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [{"name": "0.33.0", "run_id": "20260131-120000-000-abcdef", "gates": ["tpot_s.p99 > 1.05x"]}]
        },
    )

    name: Name
    run_id: Reference
    gates: Annotated[list[Annotated[str, StringConstraints(max_length=200)]], Field(max_length=50)] = Field(
        default_factory=list
    )


class BaselineView(View):
    """A baseline."""

    id: str
    name: str
    run_id: str
    kind: Kind
    gates: list[str]
    created_by: str
    created_at: Instant


class BaselineList(View):
    """All baselines, by name."""

    items: list[BaselineView]
