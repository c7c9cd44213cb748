"""Bounded exchanges with one server beside its load."""

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import msgspec

PAGE_LIMIT_BYTES = 4 * 2**20
PAGE_TIMEOUT = httpx2.Timeout(10.0, connect=5.0)
"""Of each phase of an exchange; the whole of it may take this many times as long as a read."""
_READS_MOST = 3
_PLAIN = {"Accept-Encoding": "identity"}
"""Compressing a page is work for the server that is measured."""
_SHOWN_CHARACTERS = 40
_GZIP = ("gzip", "x-gzip")
_GZIP_WINDOW = zlib.MAX_WBITS | 16


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
        """At most PAGE_LIMIT_BYTES of a reply, never following a redirect. Raises httpx2.HTTPError.

        A page that comes compressed all the same is unpacked no further than that, in a thread.
        """
        received, most_s = bytearray(), _READS_MOST * (timeout.read or 0.0) or None
        try:
            async with (
                asyncio.timeout(most_s),
                self.client.stream(
                    method, self.locate(path), json=body, headers=_PLAIN, timeout=timeout, follow_redirects=False
                ) as response,
            ):
                encoding = response.headers.get("content-encoding", "").lower()
                async for piece in response.aiter_raw() if encoding else response.aiter_bytes():
                    received += piece
                    if len(received) >= PAGE_LIMIT_BYTES:
                        break
        except TimeoutError as fault:
            raise httpx2.ReadTimeout(f"not whole within {most_s:g} s") from fault
        data = bytes(received[:PAGE_LIMIT_BYTES])
        if encoding in _GZIP:
            data = await asyncio.to_thread(_unpacked, data)
        elif encoding not in ("", "identity"):
            raise httpx2.DecodingError(f"compressed as {encoding[:_SHOWN_CHARACTERS]!r}, which nobody asked for")
        return Page(response.status_code, response.headers.get("content-type", ""), data)

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


def _unpacked(data: bytes) -> bytes:
    """At most PAGE_LIMIT_BYTES of what gzip packed. Raises httpx2.DecodingError for what is none, or cut off before."""
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        found = unpacker.decompress(data, PAGE_LIMIT_BYTES)
    except zlib.error as fault:
        raise httpx2.DecodingError("said to be gzip, and is not") from fault
    if len(found) < PAGE_LIMIT_BYTES and not unpacker.eof:
        raise httpx2.DecodingError("the gzip stream is cut off")
    return found
