"""Baselines: what runs are held against."""

from uuid import uuid4

from fastapi import APIRouter, Request
from sqlalchemy import delete, insert, select
from sqlalchemy.exc import IntegrityError

from loadgen.service.admission.gates import check_gates
from loadgen.service.auth import audit
from loadgen.service.clock import rfc3339
from loadgen.service.jobs.states import State
from loadgen.service.problems import conflict, invalid, not_found
from loadgen.service.routes.common import NO_BODY, Id, Parts, Reader, Runner, knock_of, problems
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
    baseline_id, now = uuid4().hex[:16], parts.clock.now_unix_ms()
    try:
        with parts.database.write() as connection:
            connection.execute(
                insert(baselines).values(
                    id=baseline_id,
                    name=body.name,
                    run_id=body.run_id,
                    kind=run["kind"],
                    gates=list(body.gates),
                    created_by=who.id,
                    created_unix_ms=now,
                )
            )
            audit.note(
                connection,
                now,
                actor=who.id,
                action="baseline.make",
                subject=baseline_id,
                address=knock_of(request).address,
                run_id=body.run_id,
            )
    except IntegrityError:
        raise conflict("a baseline of this name is there already") from None
    return next(item for item in list_baselines(parts, who).items if item.id == baseline_id)


@router.get("", responses=problems())
def list_baselines(parts: Parts, _who: Reader) -> BaselineList:
    """All baselines, by name."""
    with parts.database.read() as connection:
        rows = connection.execute(select(baselines).order_by(baselines.c.name)).mappings().all()
    shown = [{name: row[name] for name in BaselineView.model_fields if name in row} for row in rows]
    return BaselineList(
        items=[
            BaselineView(**each, created_at=rfc3339(row["created_unix_ms"]) or "")
            for each, row in zip(shown, rows, strict=True)
        ]
    )


@router.delete("/{baseline_id}", status_code=204, responses={**NO_BODY, **problems(404)})
def remove_baseline(baseline_id: Id, request: Request, parts: Parts, who: Runner) -> None:
    """It is no baseline any more; the run stays."""
    now = parts.clock.now_unix_ms()
    with parts.database.write() as connection:
        if connection.execute(delete(baselines).where(baselines.c.id == baseline_id)).rowcount == 0:
            raise not_found("baseline")
        audit.note(
            connection,
            now,
            actor=who.id,
            action="baseline.remove",
            subject=baseline_id,
            address=knock_of(request).address,
        )
