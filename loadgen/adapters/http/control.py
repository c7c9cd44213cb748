"""HTTP beside the load: readiness, `/v1/models`, `/version`, `/metrics`. Never on the measuring path."""

import httpx2

from loadgen.adapters.http.destination import Destination

_CONNECTIONS = 4


def control_client(destination: Destination, *, timeout_s: float = 10.0) -> httpx2.AsyncClient:
    """A client for a destination's control calls, to be closed by the caller (`async with`).

    Paths are what `destination.request_target` gives. Each phase of a call (connect, write, read, wait for a
    connection) is limited to `timeout_s`; redirects are not followed, since credentials would travel with them, and
    the environment's proxies are not used. Raises ConfigError when the destination's TLS files cannot be used.
    """
    context = destination.ssl_context()
    headers = {name: value for name, value in destination.encoded_headers().items() if name != b"Content-Type"}
    return httpx2.AsyncClient(
        base_url=destination.origin,
        headers={**headers, b"Accept": b"*/*"},
        transport=httpx2.AsyncHTTPTransport(
            verify=context if context is not None else False,
            trust_env=False,
            limits=httpx2.Limits(max_connections=_CONNECTIONS),
            uds=destination.unix_path,
        ),
        timeout=httpx2.Timeout(timeout_s),
        follow_redirects=False,
        trust_env=False,
    )
