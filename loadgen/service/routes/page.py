"""The web page: one shell for every address of it, and the files that the shell asks for."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import Response

from loadgen import __version__
from loadgen.service.auth.principal import Scope
from loadgen.service.problems import Problem, not_found
from loadgen.service.routes.common import Parts, knock_of
from loadgen.service.routes.keys import session_view
from loadgen.service.wire.keys import SessionView

router = APIRouter(include_in_schema=False)

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_OF_REPORTS = {
    "report.css": "page/page.css",
    "chart.js": "page/chart.js",
    "uPlot.js": "vendor/uplot/uPlot.iife.min.js",
    "uPlot.css": "vendor/uplot/uPlot.min.css",
    "uPlot-licence.txt": "vendor/uplot/LICENSE",
}
_VENDORED = {
    "vendor/js-yaml.mjs": "vendor/js-yaml/js-yaml.esm.min.mjs",
    "vendor/js-yaml-licence.txt": "vendor/js-yaml/LICENSE",
}
_SHELL = "shell.html"
_NO_PAGES = ("/v1/", "/page/")
"""Beneath these are answers for programs and the page's own files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    content: bytes
    media_type: str
    tag: str


def _file(path: Traversable) -> _File:
    content = path.read_bytes().replace(b"$version", __version__.encode())
    suffix = path.name.rpartition(".")[2]
    return _File(
        content=content,
        media_type=_TYPES.get(suffix, "text/plain; charset=utf-8"),
        tag=f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    )


def _found() -> Iterator[tuple[str, _File]]:
    own, reports = resources.files("loadgen.service").joinpath("page"), resources.files("loadgen.report")
    for folder, prefix in ((own, ""), (own.joinpath("views"), "views/")):
        for path in folder.iterdir():
            if path.is_file():
                yield prefix + path.name, _file(path)
    for folder, names in ((own, _VENDORED), (reports, _OF_REPORTS)):
        for name, place in names.items():
            yield name, _file(folder.joinpath(place))


_FILES = dict(_found())
"""Every file that the page may ask for, by name: a name that is not here is not looked up anywhere."""

IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match")]


@router.get("/")
@router.get("/sign-in")
@router.get("/runs")
@router.get("/runs/{_run_id}")
@router.get("/compare")
@router.get("/schedules")
@router.get("/schedules/{_schedule_id}")
@router.get("/capacity")
@router.get("/capacity/{_series}")
@router.get("/baselines")
@router.get("/webhooks")
@router.get("/webhooks/{_webhook_id}")
@router.get("/keys")
@router.get("/audit")
def shell(if_none_match: IfNoneMatch = None) -> Response:
    """The same for every address: what is shown there is fetched from the API by whoever is signed in."""
    return _answer(_FILES[_SHELL], if_none_match)


@router.get("/page/session", response_model=None)
def session(request: Request, parts: Parts) -> SessionView | Response:
    """Who opens the page. Nobody is no error here: the page then asks for a key."""
    knock = knock_of(request)
    try:
        who = parts.door.let_in(knock, Scope.READ)
    except Problem as problem:
        if problem.status is not HTTPStatus.UNAUTHORIZED:
            raise
        return Response(status_code=204)
    return session_view(parts, who, knock.cookie)


@router.get("/page/{name:path}")
def file(name: Annotated[str, Path()], if_none_match: IfNoneMatch = None) -> Response:
    """A file of the page. It holds nothing secret, so that the page can ask for a key."""
    if name not in _FILES:
        raise not_found("file")
    return _answer(_FILES[name], if_none_match)


def lost(request: Request) -> Response | None:
    """The shell, which says that no page has this address and leads home; None for whoever asks no page of it."""
    wanted = request.headers.get("accept", "")
    if f"{request.url.path}/".startswith(_NO_PAGES) or "text/html" not in wanted or "json" in wanted:
        return None
    found = _FILES[_SHELL]
    return Response(found.content, status_code=HTTPStatus.NOT_FOUND, media_type=found.media_type)


def _answer(found: _File, known: str | None) -> Response:
    headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
    if known == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)
