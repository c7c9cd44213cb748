"""Runs beside one another."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import StringConstraints

from loadgen.service.admission.gates import check_gates
from loadgen.service.routes.common import Parts, Reader, problems

router = APIRouter(prefix="/v1/compare", tags=["results"])

_Gate = Annotated[str, StringConstraints(max_length=200)]
_Run = Annotated[str, Query(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.get("", responses=problems(404, 409))
def compare_runs(
    parts: Parts,
    _who: Reader,
    baseline: _Run,
    candidate: _Run,
    gate: Annotated[list[_Gate] | None, Query(max_length=20)] = None,
) -> dict[str, Any]:
    """`loadgen.compare/1`: each metric of the candidate over the baseline's, level by level, with intervals.

    Where the workloads differ, it says in what. A gate fails a candidate where it holds, such as `tpot_s.p99 > 1.05x`.
    """
    gates = gate or []
    check_gates(gates, "query:gate.")
    return parts.files.compared(parts.runs.row(baseline), parts.runs.row(candidate), gates)
