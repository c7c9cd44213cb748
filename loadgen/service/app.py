"""The application: routes, problems as RFC 9457 has them, and the headers of every answer."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic.json_schema import models_json_schema
from sqlalchemy import exc
from starlette.exceptions import HTTPException

from loadgen import __version__
from loadgen.core.errors import LoadgenError
from loadgen.service.answer_headers import HEADERS, AnswerHeaders
from loadgen.service.body_limit import BodyLimit
from loadgen.service.problems import FieldProblem, Problem, busy, invalid
from loadgen.service.routes import (
    baselines,
    compare,
    events,
    history,
    keys,
    operations,
    options,
    page,
    results,
    runs,
    schedules,
    transfer,
    webhooks,
)
from loadgen.service.routes.common import PROBLEM_TYPE
from loadgen.service.services import Services
from loadgen.service.wire.common import ProblemView

LOG = logging.getLogger("loadgen.service")

_AGAIN_S = 5

_ROUTERS = (
    *(runs.router, runs.experiments, events.router, results.router, compare.router, options.router),
    *(
        schedules.router,
        baselines.router,
        history.router,
        webhooks.router,
        keys.router,
        operations.router,
        transfer.router,
    ),
    page.router,
)
_DESCRIPTION = (
    "Runs, sweeps, capacity tests and experiments against OpenAI-compatible servers: asked for, scheduled, followed,"
    " kept. Errors are problems as in RFC 9457. Lists are paged by cursor."
)


def application(services: Services) -> FastAPI:
    """The application over these services; it starts and stops them with itself."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        services.start()
        yield
        services.stop()

    app = FastAPI(
        title="Loadgen",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        separate_input_output_schemas=False,
    )
    app.state.services = services
    app.openapi = partial(_document, app)  # type: ignore[method-assign]
    for router in _ROUTERS:
        app.include_router(router)
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(LoadgenError, _on_fault)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    for gone in (exc.OperationalError, exc.InterfaceError, exc.TimeoutError):
        app.add_exception_handler(gone, _on_database)
    app.add_exception_handler(Exception, _on_bug)
    app.add_middleware(BodyLimit, most_bytes=services.options.max_body, answer=answer_of)
    app.add_middleware(AnswerHeaders)
    return app


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with what every problem looks like."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        _, problem = models_json_schema([(ProblemView, "serialization")], ref_template="#/components/schemas/{model}")
        document["components"]["schemas"] |= problem["$defs"]
    assert app.openapi_schema is not None
    return app.openapi_schema


def answer_of(problem: Problem) -> JSONResponse:
    """The answer that says it."""
    body = {
        "type": f"urn:loadgen:problem:{problem.kind}",
        "title": problem.status.phrase,
        "status": int(problem.status),
        "detail": problem.detail,
        "errors": [{"pointer": error.pointer, "detail": error.detail} for error in problem.errors],
    }
    return JSONResponse(body, status_code=problem.status, media_type=PROBLEM_TYPE, headers=problem.headers)


async def _on_problem(_request: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return answer_of(problem)


async def _on_fault(_request: Request, fault: Exception) -> Response:
    return answer_of(invalid(str(fault)))


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = []
    for each in error.errors():
        place, *keys = each["loc"] or ("body",)
        pointer = "".join(f"/{key}" for key in keys) if place == "body" else f"{place}:{'.'.join(map(str, keys))}"
        fields.append(FieldProblem(pointer=pointer, detail=str(each["msg"]).removeprefix("Value error, ")))
    return answer_of(invalid("fields or parameters that are not right", *fields))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND and (answer := page.lost(request)) is not None:
        return answer
    kind = {404: "not-found", 405: "method-not-allowed"}.get(status, "bad-request")
    headers = dict(error.headers or {})
    return answer_of(Problem(status=status, kind=kind, detail=status.description, headers=headers))


async def _on_database(_request: Request, fault: Exception) -> Response:
    """It is locked, full or gone, mostly for a moment."""
    LOG.error("database", extra={"fault": str(fault).partition("\n")[0]})
    return answer_of(busy("the database does not answer", again_in_s=_AGAIN_S))


async def _on_bug(request: Request, fault: Exception) -> Response:
    LOG.error("a request failed", exc_info=fault, extra={"path": request.scope.get("path")})
    return answer_of(
        Problem(
            status=HTTPStatus.INTERNAL_SERVER_ERROR,
            kind="internal",
            detail="a fault of the service; see its log",
            headers=HEADERS,  # this answer is made outside of all that adds them
        )
    )
