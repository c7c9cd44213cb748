"""Everything as one document."""

from typing import Any

from fastapi import APIRouter, Request

from loadgen.service import transfer
from loadgen.service.auth.audit import Action
from loadgen.service.routes.changes import note
from loadgen.service.routes.common import Admin, Parts, problems

router = APIRouter(prefix="/v1", tags=["operations"])


@router.get("/export", responses=problems())
def export(parts: Parts, _who: Admin) -> dict[str, Any]:
    """Runs that have ended, histories, schedules, baselines and webhooks. No keys, and no files."""
    with parts.database.read() as connection:
        return transfer.exported(connection)


@router.post("/import", responses=problems())
def import_(body: dict[str, Any], request: Request, parts: Parts, who: Admin) -> dict[str, dict[str, int]]:
    """Takes in what another service exported, as far as it is not there. Schedules come paused."""
    with parts.database.write() as connection:
        counts = transfer.imported(connection, body)
        note(connection, request, who, Action.IMPORT, added={name: count["added"] for name, count in counts.items()})
    return counts
