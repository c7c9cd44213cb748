"""Who may use Locust's page: whoever reaches it can send load, so it answers its own pages and known people alone."""

import hmac
import ipaddress
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, request

_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def guard(app: Flask, *, login: tuple[str, str] | None, loopback: bool) -> None:
    """Has the app ask for the login, where there is one, and refuse what another site's page sends.

    On a loopback address it answers to that address' names alone, so that no name of a stranger leads here.
    """

    @app.before_request
    def check() -> Response | None:
        if loopback and not _is_local(request.host):
            return Response("this page is for this machine alone\n", 403)
        origin = request.headers.get("Origin")
        if request.method in _UNSAFE and origin is not None and urlsplit(origin).netloc != request.host:
            return Response("sent from a page of another site\n", 403)
        if login is not None and not _knows(login):
            return Response("who are you?\n", 401, {"WWW-Authenticate": 'Basic realm="loadgen", charset="UTF-8"'})
        return None

    app.wsgi_app = _without_cors(app.wsgi_app)  # type: ignore[method-assign]


def _knows(login: tuple[str, str]) -> bool:
    given = request.authorization
    user, password = (given.username or "", given.password or "") if given is not None else ("", "")
    same = [hmac.compare_digest(a.encode(), b.encode()) for a, b in zip((user, password), login, strict=True)]
    return all(same)


def _is_local(host: str) -> bool:
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _without_cors(inner: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Takes back that Locust lets the pages of all sites read what it answers."""

    def outer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        def begin(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            kept = [(name, value) for name, value in headers if not name.lower().startswith("access-control-")]
            return start(status, kept, *rest)

        return inner(environ, begin)

    return outer
