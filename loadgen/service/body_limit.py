"""Bodies that are too large, too slow or no JSON end here, before anything is made of them."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from loadgen.service.problems import Problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Answer = Callable[[Problem], Application]

_BODY_S = 30.0
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class BodyLimit:
    """Reads the whole body ahead, up to its limit. `answer` makes the response of a problem."""

    def __init__(self, app: Application, *, most_bytes: int, answer: Answer, limit_s: float = _BODY_S) -> None:
        self._app, self._most, self._answer, self._limit_s = app, most_bytes, answer, limit_s

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http" or scope["method"] not in _WITH_BODY:
            await self._app(scope, receive, send)
            return
        try:
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            self._check(headers)
            async with asyncio.timeout(self._limit_s):
                body = await self._whole(receive)
            if body and headers.get(b"content-type", "").partition(";")[0].strip().lower() != "application/json":
                raise _problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "not-json", "expected a body of application/json")
        except TimeoutError:
            problem = _problem(HTTPStatus.REQUEST_TIMEOUT, "too-slow", "the body did not come in time")
            await self._answer(problem)(scope, receive, send)
            return
        except Problem as problem:
            await self._answer(problem)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    def _check(self, headers: dict[bytes, str]) -> None:
        length = headers.get(b"content-length", "0")
        if not length.isdigit() or int(length) > self._most:
            raise self._too_large()

    async def _whole(self, receive: Receive) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _problem(HTTPStatus.BAD_REQUEST, "cut-off", "the body ended early")
            part = message.get("body", b"")
            size += len(part)
            if size > self._most:
                raise self._too_large()
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def _too_large(self) -> Problem:
        detail = f"expected at most {self._most} bytes (--max-body)"
        return _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)


def _problem(status: HTTPStatus, kind: str, detail: str) -> Problem:
    return Problem(status=status, kind=kind, detail=detail)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once, and then whatever else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
