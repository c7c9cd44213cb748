"""Whether a server is ready, asked once."""

import httpx2

from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination

_TIMEOUT_S = 5.0


async def missing_for_readiness(destination: Destination, path: str) -> str | None:
    """None when the page at `path` is there; else what is missing, in words.

    A server without that page is ready when it lists its models.
    """
    async with control_client(destination, timeout_s=_TIMEOUT_S) as client:
        for asked in (path, "/v1/models"):
            try:
                response = await client.get(destination.request_target(asked))
            except httpx2.HTTPError as fault:
                return f"{destination.url} cannot be reached ({str(fault) or type(fault).__name__})"
            if response.is_success:
                return None
            if response.status_code != httpx2.codes.NOT_FOUND:
                break
    return f"{asked} answers {response.status_code}"
