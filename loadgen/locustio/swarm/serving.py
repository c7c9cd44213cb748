"""Locust's page with ours in it, on its port."""

import socket
from collections.abc import Callable
from typing import Any

import gevent
from locust.env import Environment
from locust.web import WebUI

from loadgen.core.errors import ConfigError
from loadgen.locustio.swarm.guard import guard
from loadgen.locustio.swarm.login import login_of
from loadgen.locustio.swarm.routes import PREFIX, add_routes
from loadgen.locustio.swarm.state import LadderState
from loadgen.locustio.swarm.tables import TAB, TABLE
from loadgen.options.locust import LocustOptions

_LOOK_S = 0.05
_DOWNLOADS = [
    {"href": f".{PREFIX}/report?download", "title": "Download LLM report (HTML)"},
    {"href": f".{PREFIX}/result", "title": "Download LLM results (JSON)"},
    {"href": f".{PREFIX}/", "title": "LLM page: charts by level, verdict"},
]


def served(
    environment: Environment,
    options: LocustOptions,
    state: LadderState,
    *,
    workers: Callable[[], list[dict[str, Any]]],
    metrics_url: Callable[[], str | None],
    start: Callable[[dict[str, str]], str | None],
    insist: Callable[[], None],
) -> WebUI:
    """The page, once it is served; its address is in `web_address`. The functions are those of `add_routes`.

    Raises ConfigError for a port that cannot be had, and for a login that is none.
    """
    login = login_of(options)
    check_port(options.web_host, options.port, flag="--port")
    web = environment.create_web_ui(host=options.web_host, port=options.port, delayed_start=True)
    web.template_args |= {"extended_tabs": [TAB], "extended_tables": [TABLE], "extended_csv_files": _DOWNLOADS}
    assert web.app is not None
    web.app.jinja_env.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the form has an order
    guard(web.app, login=login, loopback=login is None)
    add_routes(web.app, state, workers=workers, metrics_url=metrics_url, start=start, insist=insist)
    web.start()
    while web.server is None or not web.server.started:
        gevent.sleep(_LOOK_S)
        if web.greenlet is not None and web.greenlet.dead:
            raise ConfigError(f"--port: {options.web_host}:{options.port} cannot be listened on")
    return web


def web_address(web: WebUI) -> str:
    """Where it is."""
    host = f"[{web.host}]" if ":" in web.host else web.host
    assert web.server is not None
    return f"http://{host}:{web.server.server_port}/"


def check_port(host: str, port: int, *, flag: str) -> None:
    """Raises ConfigError for one that cannot be had, which Locust would only log."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as fault:
            raise ConfigError(f"{flag}: {host}:{port} cannot be listened on: {fault.strerror or fault}") from None
