"""Capacities over time."""

from typing import Any

from fastapi import APIRouter

from loadgen.service.clock import rfc3339
from loadgen.service.history import history
from loadgen.service.history.baseline import baseline_of
from loadgen.service.jobs import queue
from loadgen.service.problems import not_found
from loadgen.service.routes.common import Id, Limit, Parts, Reader, problems
from loadgen.service.wire.history import CapacityBaseline, CapacityPoint, CapacitySeries, PointList, SeriesList

router = APIRouter(prefix="/v1/history", tags=["history"])


@router.get("/capacity", responses=problems())
def list_series(parts: Parts, _who: Reader) -> SeriesList:
    """Series of capacity tests: same server, same options. The latest test of each."""
    items = []
    with parts.database.read() as connection:
        for row in history.all_series(connection):
            run = queue.load(connection, row["run_id"])
            assert run is not None
            items.append(
                CapacitySeries(
                    series=row["series"],
                    tests=row["n"],
                    latest=_view(row),
                    target=run["target"],
                    options=run["options"],
                )
            )
    return SeriesList(items=items)


@router.get("/capacity/{series}", responses=problems(404))
def show_series(series: Id, parts: Parts, _who: Reader, limit: Limit = 200) -> PointList:
    """The results of one series in the order of time, each with whether it changed."""
    with parts.database.read() as connection:
        rows = history.points(connection, series, limit)
        if not rows:
            raise not_found("series")
        held = baseline_of(connection, rows[-1])
    return PointList(
        items=[_view(row) for row in rows], baseline=None if held is None else CapacityBaseline.model_validate(held)
    )


def _view(row: dict[str, Any]) -> CapacityPoint:
    detail = row["detail"]
    return CapacityPoint.of(
        row,
        at=rfc3339(row["at_unix_ms"]) or "",
        name=detail.get("name"),
        compared_with=detail["n"],
        expected=detail["expected"],
        expected_low=detail["low"],
        expected_high=detail["high"],
        ratio=detail["ratio"],
    )
