"""Health, readiness and metrics, for whoever watches over the service. Health and readiness need no key."""

import logging

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from loadgen.adapters.prometheus.page import chosen
from loadgen.core.errors import StoreError
from loadgen.service.routes.common import PROBLEM_SCHEMA, PROBLEM_TYPE, Parts, Reader, problems

LOG = logging.getLogger("loadgen.service")

router = APIRouter(tags=["operations"])


@router.get("/healthz", responses={200: {"description": "The process answers."}})
async def health() -> dict[str, str]:
    """Whether the process answers: it waits for no thread, all of which may wait for a database that is gone."""
    return {"status": "ok"}


@router.get(
    "/readyz", responses={503: {"content": {PROBLEM_TYPE: {"schema": PROBLEM_SCHEMA}}, "description": "Not yet."}}
)
def readiness(parts: Parts) -> JSONResponse:
    """Whether the database answers and runs are worked on."""
    try:
        parts.database.check()
    except StoreError as fault:
        LOG.warning("not ready", extra={"fault": str(fault)})
        return _not_ready("the database does not answer")  # where it is and as whom it is asked is nobody's business
    if parts.closing.is_set():
        return _not_ready("the service ends")
    return JSONResponse({"status": "ok"}) if parts.works else _not_ready("runs are not worked on")


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The page."},
        **problems(),
    },
)
def metrics(request: Request, parts: Parts, _who: Reader) -> Response:
    """The page for Prometheus, in the form that it asks for."""
    content_type, render = chosen(request.headers.get("accept", ""))
    return Response(render(parts.metrics.families()), headers={"Content-Type": content_type})


def _not_ready(detail: str) -> JSONResponse:
    body = {
        "type": "urn:loadgen:problem:not-ready",
        "title": "Service Unavailable",
        "status": 503,
        "detail": detail,
        "errors": [],
    }
    return JSONResponse(body, status_code=503, media_type=PROBLEM_TYPE)
