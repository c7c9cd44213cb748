"""Bounded exchanges with one server beside its load."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

PAGE_LIMIT_BYTES = 4 * 2**20
PAGE_TIMEOUT = httpx2.Timeout(10.0, connect=5.0)


@dataclass(frozen=True, slots=True)
class Page:
    """What a server answered, cut off at PAGE_LIMIT_BYTES."""

    status: int
    content_type: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none of it is replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON; None when it is something else."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def json_object(self) -> dict[str, Any]:
        """The body as a JSON object; empty when it is something else."""
        value = self.json()
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True, slots=True)
class Control:
    """One server. `client` has its address as the base URL, and the headers and TLS settings of the run.

    `locate` gives the place of `/v1/models` or `/health` on a server whose API does not begin at its root.
    """

    client: httpx2.AsyncClient
    locate: Callable[[str], str] = str

    async def fetch(
        self, method: str, path: str, timeout: httpx2.Timeout = PAGE_TIMEOUT, body: dict[str, Any] | None = None
    ) -> Page:
        """At most PAGE_LIMIT_BYTES of a reply, never following a redirect. Raises httpx2.HTTPError."""
        received = bytearray()
        url = self.locate(path)
        async with self.client.stream(method, url, json=body, timeout=timeout, follow_redirects=False) as response:
            async for piece in response.aiter_bytes():
                received += piece
                if len(received) >= PAGE_LIMIT_BYTES:
                    break
        return Page(response.status_code, response.headers.get("content-type", ""), bytes(received))

    async def page(self, path: str) -> Page | None:
        """An optional page; None when it could not be had."""
        try:
            return await self.fetch("GET", path)
        except httpx2.HTTPError:
            return None

    async def json_page(self, path: str) -> dict[str, Any]:
        """An optional page that is a JSON object; empty when it is not there or something else."""
        page = await self.page(path)
        return page.json_object() if page is not None and page.status == 200 else {}
