"""What a service knows, as one document, for keeping and for another service. Keys, sessions and files stay."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from sqlalchemy import Connection, Table, insert, or_, select

from loadgen.service.jobs.states import ENDED
from loadgen.service.problems import FieldProblem, invalid
from loadgen.service.store.tables import baselines, history, runs, schedules, webhooks

SCHEMA = "loadgen.service/1"

Rows: TypeAlias = list[dict[str, Any]]
_TABLES: Mapping[str, Table] = {
    table.name: table for table in (runs, history, schedules, baselines, webhooks)
}  # in the order in which they refer to one another
_LEFT_OUT = {"runs": frozenset({"number", "owner", "child"})}


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
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            pointer = "/".join(map(str, ("", name, place, *problem["loc"])))
            raise invalid("not what was exported", FieldProblem(pointer=pointer, detail=problem["msg"])) from None
    return checked


def _model(name: str) -> type[BaseModel]:
    """What a row of the table has to be."""
    fields: dict[str, Any] = {}
    for column in _TABLES[name].c:
        if column.name in _LEFT_OUT.get(name, ()):
            continue
        kind: Any = dict[str, Any] | list[Any] if column.type.python_type is dict else column.type.python_type
        fields[column.name] = (kind | None, None) if column.nullable else (kind, ...)
    return create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **fields)
