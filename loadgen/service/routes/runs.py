"""Runs: asked for, listed, followed, cancelled."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from loadgen.service.jobs.states import State
from loadgen.service.problems import not_found
from loadgen.service.routes.common import (
    Cursor,
    Id,
    IdempotencyKey,
    Limit,
    Parts,
    Reader,
    Runner,
    limits_of,
    problems,
)
from loadgen.service.run_list import Filters
from loadgen.service.runs import asked_of
from loadgen.service.wire.common import Kind
from loadgen.service.wire.runs import ExperimentRequest, RunDetail, RunPage, RunRequest

router = APIRouter(prefix="/v1/runs", tags=["runs"])
experiments = APIRouter(prefix="/v1/experiments", tags=["experiments"])

_ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"headers": {"Location": {"schema": {"type": "string"}, "description": "The run."}}}
}
_TEXT = r"^[^\x00]*$"
Label = Annotated[
    str | None, Query(max_length=300, pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*=[^\x00]*$", description="As NAME=VALUE.")
]


@router.post("", status_code=202, responses={**_ACCEPTED, **problems()})
def ask_for_run(
    body: RunRequest, parts: Parts, who: Runner, response: Response, idempotency_key: IdempotencyKey = None
) -> RunDetail:
    """Queues a run. It begins when its server is free."""
    run_id, _ = parts.runs.ask(body, principal=who.id, limits=limits_of(parts, who), key=idempotency_key)
    response.headers["Location"] = f"/v1/runs/{run_id}"
    return parts.runs.detail(run_id)


@router.post("/check", responses=problems())
def check_run(body: RunRequest, parts: Parts, who: Runner) -> dict[str, bool]:
    """Says what is wrong with a request without queueing it."""
    parts.runs.admitted(asked_of(body), limits_of(parts, who))
    return {"ok": True}


@router.get("", responses=problems())
def list_runs(
    parts: Parts,
    _who: Reader,
    kind: Kind | None = None,
    state: State | None = None,
    schedule_id: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,64}$")] = None,
    name: Annotated[str | None, Query(max_length=100, pattern=_TEXT, description="Part of the name.")] = None,
    label: Label = None,
    target: Annotated[
        str | None, Query(max_length=200, pattern=_TEXT, description="Part of the server's URL or name.")
    ] = None,
    since: Annotated[AwareDatetime | None, Query(description="Asked for then or later.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Asked for before then.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> RunPage:
    """Runs, the newest first."""
    pair = None
    if label is not None:
        label_name, _, value = label.partition("=")
        pair = (label_name, value)
    filters = Filters(
        kind=kind,
        state=state,
        schedule_id=schedule_id,
        name=name,
        label=pair,
        target=target,
        since_unix_ms=_unix_ms(since),
        until_unix_ms=_unix_ms(until),
    )
    items, behind = parts.runs.page(filters, before=cursor, limit=limit)
    return RunPage(items=items, next=behind)


def _unix_ms(instant: datetime | None) -> int | None:
    return None if instant is None else round(instant.timestamp() * 1000)


@router.get("/{run_id}", responses=problems(404))
def show_run(run_id: Id, parts: Parts, _who: Reader) -> RunDetail:
    """One run, and how far it is."""
    return parts.runs.detail(run_id)


@router.post("/{run_id}/cancel", status_code=202, responses=problems(404, 409))
def cancel_run(run_id: Id, parts: Parts, _who: Runner) -> RunDetail:
    """Stops a run in order: what it measured so far is kept. One that waits ends at once."""
    parts.runs.cancel(run_id)
    return parts.runs.detail(run_id)


@experiments.post("", status_code=202, responses={**_ACCEPTED, **problems()})
def ask_for_experiment(
    body: ExperimentRequest, parts: Parts, who: Runner, response: Response, idempotency_key: IdempotencyKey = None
) -> RunDetail:
    """Queues an experiment: arms against a baseline."""
    return ask_for_run(RunRequest(kind="experiment", **body.model_dump()), parts, who, response, idempotency_key)


@experiments.get("", responses=problems())
def list_experiments(
    parts: Parts, _who: Reader, state: State | None = None, cursor: Cursor = None, limit: Limit = 50
) -> RunPage:
    """Experiments, the newest first."""
    items, behind = parts.runs.page(Filters(kind="experiment", state=state), before=cursor, limit=limit)
    return RunPage(items=items, next=behind)


@experiments.get("/{run_id}", responses=problems(404))
def show_experiment(run_id: Id, parts: Parts, _who: Reader) -> RunDetail:
    """One experiment; what there is of it beside stands under `/v1/runs/{id}`."""
    found = parts.runs.detail(run_id)
    if found.kind != "experiment":
        raise not_found("experiment")
    return found
