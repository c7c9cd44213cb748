"""Baselines: what runs are held against."""

from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request

from loadgen.service.admission.gates import check_gates
from loadgen.service.auth.audit import Action
from loadgen.service.clock import rfc3339
from loadgen.service.jobs.states import State
from loadgen.service.problems import conflict, invalid, not_found
from loadgen.service.routes.changes import found, note
from loadgen.service.routes.common import NO_BODY, Id, Parts, Reader, Runner, problems
from loadgen.service.store import named
from loadgen.service.store.tables import baselines
from loadgen.service.wire.results import BaselineList, BaselineRequest, BaselineView

router = APIRouter(prefix="/v1/baselines", tags=["baselines"])

_KINDS = ("run", "sweep", "capacity")


@router.post("", status_code=201, responses=problems(404, 409))
def make_baseline(body: BaselineRequest, request: Request, parts: Parts, who: Runner) -> BaselineView:
    """Makes a completed run a baseline. Its files are kept for as long as it is one."""
    check_gates(body.gates, "/gates/")
    run = parts.runs.row(body.run_id)
    if State(run["state"]) is not State.COMPLETED or not run["valid"] or run["files_removed"]:
        raise conflict("expected a run that is completed and valid and has its files")
    if run["kind"] not in _KINDS:
        raise conflict("an experiment has its baseline within itself")
    if run["kind"] == "capacity" and body.gates:
        raise invalid(
            "gates are for runs and sweeps; a capacity fails when it is for certain lower than the baseline's"
        )
    values = {**body.model_dump(), "id": uuid4().hex[:16], "kind": run["kind"], "created_by": who.id}
    with parts.database.write() as connection:
        if not named.add(connection, baselines, **values, created_unix_ms=parts.clock.now_unix_ms()):
            raise conflict("a baseline of this name is there already")
        note(connection, request, who, Action.BASELINE_MAKE, values["id"], name=body.name, run_id=body.run_id)
    return _view(found(parts, baselines, values["id"], "baseline"))


@router.get("", responses=problems())
def list_baselines(parts: Parts, _who: Reader) -> BaselineList:
    """All baselines, by name."""
    with parts.database.read() as connection:
        return BaselineList(items=[_view(row) for row in named.every(connection, baselines)])


@router.delete("/{baseline_id}", status_code=204, responses={**NO_BODY, **problems(404)})
def remove_baseline(baseline_id: Id, request: Request, parts: Parts, who: Runner) -> None:
    """It is no baseline any more; the run stays."""
    with parts.database.write() as connection:
        if not named.remove(connection, baselines, baseline_id):
            raise not_found("baseline")
        note(connection, request, who, Action.BASELINE_REMOVE, baseline_id)


def _view(row: dict[str, Any]) -> BaselineView:
    return BaselineView.of(row, created_at=rfc3339(row["created_unix_ms"]) or "")
