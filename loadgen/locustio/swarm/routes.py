"""The routes beside Locust's own: the LLM page and its data, the report, metrics; and our say in how a test starts."""

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import urllib3
from flask import Blueprint, Flask, Response, jsonify, request, send_file
from locust.runners import STATE_RUNNING, STATE_STOPPING
from werkzeug.datastructures import ImmutableMultiDict

from loadgen import __version__
from loadgen.locustio.form import FIELDS, HOST
from loadgen.locustio.swarm.state import LadderState
from loadgen.locustio.swarm.tables import level_rows

PREFIX = "/loadgen"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_ASSETS = {
    "uPlot.js": ("loadgen.report", "vendor/uplot/uPlot.iife.min.js", "text/javascript"),
    "uPlot.css": ("loadgen.report", "vendor/uplot/uPlot.min.css", "text/css"),
    "page.css": ("loadgen.report", "page/page.css", "text/css"),
    "llm.js": ("loadgen.locustio.swarm", "page/llm.js", "text/javascript"),
    "llm.css": ("loadgen.locustio.swarm", "page/llm.css", "text/css"),
}
_LINK = (
    f'<a href=".{PREFIX}/" style="position:fixed;right:1rem;bottom:3.5rem;z-index:9;padding:.5rem .9rem;'
    'border-radius:6px;background:#15803d;color:#fff;font:600 14px sans-serif;text-decoration:none">LLM page</a>'
)
_METRICS_TIMEOUT_S = 10.0


def add_routes(
    app: Flask,
    state: LadderState,
    *,
    workers: Callable[[], list[dict[str, Any]]],
    metrics_url: Callable[[], str | None],
    start: Callable[[dict[str, str]], str | None],
    insist: Callable[[], None],
) -> None:
    """Adds them. `start` begins a ladder from a filled form and returns what is wrong with it, None for nothing.

    `insist` is for whoever stops a ladder that is stopping already, of which Locust would tell nobody.
    """
    app.register_blueprint(_pages(state, workers))
    _add_metrics(app, metrics_url)
    _have_a_say(app, state, start, insist)


def _pages(state: LadderState, workers: Callable[[], list[dict[str, Any]]]) -> Blueprint:
    """The LLM page, its data, its report and its result."""
    pages = Blueprint("loadgen", __name__, url_prefix=PREFIX)

    @pages.get("/")
    def page() -> Response:
        text = resources.files("loadgen.locustio.swarm").joinpath("page/llm.html").read_text(encoding="utf-8")
        return Response(text.replace("$version", __version__), content_type="text/html; charset=utf-8")

    @pages.get("/state")
    def current() -> Response:
        return jsonify(state.as_json() | {"workers": workers()})

    @pages.get("/assets/<name>")
    def asset(name: str) -> Response:
        if name not in _ASSETS:
            return Response("no such file\n", 404)
        package, path, kind = _ASSETS[name]
        content = resources.files(package).joinpath(path).read_bytes()
        return Response(content, content_type=f"{kind}; charset=utf-8")

    @pages.get("/report")
    def report() -> Response:
        if state.report is None:
            return Response("there is no report yet: it is made when the ladder has ended\n", 404)
        download = "download" in request.args
        name = f"{Path(state.report).parent.name}.html"
        return send_file(state.report, mimetype="text/html", as_attachment=download, download_name=name, max_age=0)

    @pages.get("/result")
    def result() -> Response:
        document = (state.ended or {}).get("document")
        if document is None:
            return Response("there is no result yet\n", 404)
        return Response(document, content_type="application/json")

    @pages.after_request
    def protect(response: Response) -> Response:
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        response.headers.setdefault("Referrer-Policy", "no-referrer")
        response.headers["Cache-Control"] = "no-store"
        if response.mimetype == "text/html" and request.endpoint == "loadgen.page":
            response.headers["Content-Security-Policy"] = _POLICY
        return response

    return pages


def _add_metrics(app: Flask, url_of: Callable[[], str | None]) -> None:
    """Adds the page for Prometheus of the process that measures."""

    @app.get("/metrics")
    def metrics() -> Response:
        url = url_of()
        try:
            if url is None:
                raise urllib3.exceptions.HTTPError
            accept = {"Accept": request.headers.get("Accept", "")}
            answer = urllib3.request("GET", url, headers=accept, timeout=_METRICS_TIMEOUT_S, retries=False)
        except urllib3.exceptions.HTTPError:
            return Response("the process that measures is not there\n", 503)
        return Response(answer.data, answer.status, content_type=answer.headers["Content-Type"])


def _have_a_say(
    app: Flask, state: LadderState, start: Callable[[dict[str, str]], str | None], insist: Callable[[], None]
) -> None:
    """Has Locust's form start a ladder, its stop button stop one, and its page show one."""

    @app.before_request
    def begin() -> Response | None:
        if request.method != "POST":
            return None
        if request.path == "/stop" and state.phase == "stopping":
            insist()
        if request.path != "/swarm":
            return None
        wrong = start(request.form.to_dict())
        if wrong is not None:
            return jsonify({"success": False, "message": wrong, "host": ""})
        # Locust's own fields are unused, so nothing in them may have it refuse what has begun by now.
        kept = [(name, value) for name, value in request.form.items() if name in (HOST, *FIELDS)]
        request.form = ImmutableMultiDict(kept)
        return None

    @app.after_request
    def add_ours(response: Response) -> Response:
        if request.path == "/" and response.mimetype == "text/html":
            response.set_data(response.get_data(as_text=True).replace("</body>", f"{_LINK}</body>"))
        elif request.path == "/stats/requests" and response.is_json:
            stats: dict[str, Any] = response.get_json()
            # Locust's page asks no more in that state, and would never leave it. Its button is there to insist.
            if stats["state"] == STATE_STOPPING or state.phase == "stopping":
                stats["state"] = STATE_RUNNING
            stats["extended_stats"] = [{"key": "llm", "data": level_rows(state.rows)}]
            response.set_data(jsonify(stats).get_data())
        return response
