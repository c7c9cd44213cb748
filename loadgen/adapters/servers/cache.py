"""Empties a server's prefix cache."""

import asyncio

import httpx2

from loadgen.adapters.servers.control import Control, Page
from loadgen.core.errors import TargetError

RESET_WITHIN_S = 5.0
_AGAIN_S = 0.25


async def reset_prefix_cache(control: Control, path: str) -> None:
    """Asks until the server has done it: it cannot while a request runs, or just ended.

    Raises TargetError with the server's answer when it has not within RESET_WITHIN_S.
    """
    end_s = asyncio.get_running_loop().time() + RESET_WITHIN_S
    while True:
        try:
            page = await control.fetch("POST", path)
        except httpx2.HTTPError as fault:
            raise TargetError(f"POST {path}: {fault or type(fault).__name__}") from fault
        if page.status == 200 and page.json_object().get("success") is not False:
            return
        if asyncio.get_running_loop().time() >= end_s:
            raise TargetError(f"POST {path}: the prefix cache was not emptied: {_said(page)}")
        await asyncio.sleep(_AGAIN_S)


def _said(page: Page) -> str:
    return f"HTTP {page.status}: {page.text.strip()[:200]}"
