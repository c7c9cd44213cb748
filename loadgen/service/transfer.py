"""What a service knows, as one document, for keeping and for another service. Keys, sessions and files stay."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model
from sqlalchemy import BigInteger, Column, Connection, Table, insert, or_, select

from loadgen.core.errors import ConfigError
from loadgen.options.fields import strict_json
from loadgen.service.jobs.exposition import decode_families
from loadgen.service.jobs.states import ENDED
from loadgen.service.problems import FieldProblem, invalid
from loadgen.service.run_list import view_of
from loadgen.service.schedules.cron import Timetable
from loadgen.service.store.tables import baselines, history, runs, schedules, webhooks
from loadgen.service.wire.history import CapacityPoint
from loadgen.service.wire.results import BaselineRequest
from loadgen.service.wire.schedules import ScheduleRequest
from loadgen.service.wire.webhooks import WebhookRequest

SCHEMA = "loadgen.service/1"

Rows: TypeAlias = list[dict[str, Any]]
_TABLES: Mapping[str, Table] = {
    table.name: table for table in (runs, history, schedules, baselines, webhooks)
}  # in the order in which they refer to one another
_LEFT_OUT = {"runs": frozenset({"number", "owner", "child"})}
_LAST_UNIX_MS = 253_402_300_799_999
"""The end of the year 9999, behind which there is no date."""
_MOST = 2**31 - 1


def exported(connection: Connection) -> dict[str, Any]:
    """Everything that has ended, and everything that is planned."""
    document: dict[str, Any] = {"schema": SCHEMA}
    for name, table in _TABLES.items():
        columns = [column for column in table.c if column.name not in _LEFT_OUT.get(name, ())]
        wanted = select(*columns)
        if name == "runs":
            wanted = wanted.where(runs.c.state.in_(ENDED)).order_by(runs.c.number)
        document[name] = [dict(row) for row in connection.execute(wanted).mappings()]
    return document


def imported(connection: Connection, document: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Adds what is not there yet, by id and name; counts what was added and what was passed over.

    Runs come without their files, schedules paused. Raises Problem for what is no such document.
    """
    if document.get("schema") != SCHEMA:
        raise invalid(f"expected a document of schema {SCHEMA}", FieldProblem(pointer="/schema", detail="is another"))
    try:
        strict_json(dict(document))
    except ValueError as error:
        raise invalid(f"not what was exported: {error}") from None
    counts = {}
    for name, table in _TABLES.items():
        rows = _checked(name, document.get(name, []))
        added = sum(_add(connection, table, _as_it_comes(name, row)) for row in rows)
        counts[name] = {"added": added, "passed_over": len(rows) - added}
    return counts


def _as_it_comes(name: str, row: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "runs":
            if row["state"] not in ENDED:
                raise invalid("a run that has not ended cannot be taken in")
            return row | {"files_removed": True}
        case "schedules":
            return row | {"paused": True}
        case _:
            return row


def _add(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    unique = [column for column in table.c if column.unique or (column.primary_key and column.name in row)]
    same = or_(*(column == row[column.name] for column in unique))
    if connection.execute(select(*unique).where(same)).first() is not None:
        return False
    run_id = row.get("run_id")
    if run_id is not None and connection.execute(select(runs.c.id).where(runs.c.id == run_id)).first() is None:
        return False
    connection.execute(insert(table).values(**row))
    return True


def _checked(name: str, rows: Any) -> Rows:
    model = _model(name)
    checked = []
    for place, row in enumerate(rows if isinstance(rows, list) else [rows]):
        try:
            checked.append(model.model_validate(row).model_dump())
            _SHOWN[name](checked[-1])
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            pointer = "/".join(map(str, ("", name, place, *problem["loc"])))
            raise invalid("not what was exported", FieldProblem(pointer=pointer, detail=problem["msg"])) from None
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            detail = str(error) if isinstance(error, ConfigError) else "lacks what an export has there"
            raise invalid("not what was exported", FieldProblem(pointer=f"/{name}/{place}", detail=detail)) from None
    return checked


def _schedule(row: Mapping[str, Any]) -> None:
    asked = ScheduleRequest(**{field: row[field] for field in ScheduleRequest.model_fields})
    Timetable(asked.cron, asked.time_zone).check(row["created_unix_ms"])


def _point(row: Mapping[str, Any]) -> None:
    told = row["detail"]
    decode_families(told["families"])
    expected = {f"expected_{bound}": told[bound] for bound in ("low", "high")}
    CapacityPoint.of(
        row, at="", name=None, compared_with=told["n"], expected=told["expected"], ratio=told["ratio"], **expected
    )


_SHOWN: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "runs": view_of,
    "history": _point,
    "schedules": _schedule,
    "baselines": lambda row: BaselineRequest(**{field: row[field] for field in BaselineRequest.model_fields}),
    "webhooks": lambda row: WebhookRequest(**{field: row[field] for field in WebhookRequest.model_fields}),
}
"""What lists make of a row: one of which they could make nothing would take all others with it."""


def _model(name: str) -> type[BaseModel]:
    """What a row of the table has to be."""
    fields: dict[str, Any] = {}
    for column in _TABLES[name].c:
        if column.name in _LEFT_OUT.get(name, ()):
            continue
        kind = _kind(column)
        fields[column.name] = (kind | None, None) if column.nullable else (kind, ...)
    return create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **fields)


def _kind(column: "Column[Any]") -> Any:
    """What the column can hold, in every database."""
    kind = column.type.python_type
    if kind is dict:
        return dict[str, Any] | list[Any]
    if kind is str:
        length = getattr(column.type, "length", None)
        return Annotated[str, StringConstraints(max_length=length, pattern=r"^[^\x00]*$")]
    if kind is int:
        return Annotated[int, Field(ge=0, le=_LAST_UNIX_MS if isinstance(column.type, BigInteger) else _MOST)]
    return kind
