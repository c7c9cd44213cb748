"""What a run left: summary, report, records, files."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import FileResponse, Response, StreamingResponse

from loadgen.core.errors import ConfigError
from loadgen.service.problems import not_found
from loadgen.service.routes.common import Id, Parts, Reader, problems
from loadgen.service.wire.results import FileList, FileView

router = APIRouter(prefix="/v1/runs/{run_id}", tags=["results"])

_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
)
"""A report carries its scripts with it, and texts of servers: it runs apart from the service's own pages."""

_ZSTD, _TAR, _BYTES = "application/zstd", "application/x-tar", "application/octet-stream"


def _content(kind: str, what: str) -> dict[int | str, dict[str, object]]:
    return {200: {"content": {kind: {"schema": {"type": "string", "format": "binary"}}}, "description": what}}


def _attachment(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


@router.get(
    "/summary",
    response_class=Response,
    responses={
        200: {
            "content": {"application/json": {"schema": {"type": "object"}}},
            "description": "`loadgen.summary/1`, `loadgen.sweep/1`, `loadgen.capacity/1` or `loadgen.result/1`.",
        },
        **problems(404),
    },
)
def summary(run_id: Id, parts: Parts, _who: Reader) -> Response:
    """The whole result."""
    return Response(parts.files.summary(parts.runs.row(run_id)), media_type="application/json")


@router.get(
    "/view",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "`loadgen.view/1`."},
        **problems(404),
    },
)
def view(run_id: Id, parts: Parts, _who: Reader) -> Response:
    """The result as the page shows it: the verdict in words, tables and charts."""
    return Response(parts.files.view(parts.runs.row(run_id)), media_type="application/json")


@router.get(
    "/report", response_class=Response, responses={**_content("text/html", "The report."), **problems(404, 409)}
)
def report(run_id: Id, parts: Parts, _who: Reader) -> Response:
    """The report as a page that needs nothing else."""
    page = parts.files.report(parts.runs.row(run_id))
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": _REPORT_POLICY})


@router.get("/records", response_class=StreamingResponse, responses={**_content(_ZSTD, "JSON lines."), **problems(404)})
def records(run_id: Id, parts: Parts, _who: Reader) -> Response:
    """Every request's record, of all levels, as JSON lines in zstd."""
    found = parts.files.records(parts.runs.row(run_id))
    return StreamingResponse(found, media_type=_ZSTD, headers=_attachment(f"{run_id}-records.jsonl.zst"))


@router.get("/files", responses=problems(404))
def files(run_id: Id, parts: Parts, _who: Reader) -> FileList:
    """All files of the results."""
    return FileList(
        items=[FileView(name=name, bytes=size) for name, size in parts.files.listed(parts.runs.row(run_id))]
    )


@router.get(
    "/files/{name:path}",
    response_class=FileResponse,
    responses={**_content(_BYTES, "The file."), **problems(404)},
)
def one_file(
    run_id: Id, name: Annotated[str, Path(min_length=1, max_length=500)], parts: Parts, _who: Reader
) -> Response:
    """One of them, as it is."""
    try:
        path = parts.files.one(parts.runs.row(run_id), name)
    except ConfigError:
        raise not_found("file") from None
    return FileResponse(path, media_type=_BYTES, headers=_attachment(path.name))


@router.get(
    "/archive", response_class=StreamingResponse, responses={**_content(_TAR, "The folder."), **problems(404, 409)}
)
def archive(run_id: Id, parts: Parts, _who: Reader) -> Response:
    """The folder of results, as `loadgen report`, `export` and `compare` take it."""
    found = parts.files.archive(parts.runs.row(run_id))
    return StreamingResponse(found, media_type=_TAR, headers=_attachment(f"{run_id}.tar"))


@router.get("/log", response_class=Response, responses={**_content("text/plain", "Its end."), **problems(404)})
def log(run_id: Id, parts: Parts, _who: Reader) -> Response:
    """What the process of the run wrote, its last 64 KiB."""
    return Response(parts.files.log(parts.runs.row(run_id)), media_type="text/plain; charset=utf-8")
