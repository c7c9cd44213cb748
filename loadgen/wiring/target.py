"""The target that options name, what it answers, and what else is asked of it beside its load."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.servers.control import Control
from loadgen.adapters.servers.generic import TargetFacts, probe_target
from loadgen.core.errors import ConfigError
from loadgen.options.target import TargetOptions
from loadgen.wiring.api_key import api_key_from


def destination_of(options: TargetOptions) -> Destination:
    """Where requests go. Raises ConfigError for a URL, key, header or file that will not do; `url` must be given."""
    if options.url is None:
        raise ConfigError("--url: this option is needed")
    return _destination(options.url, options, api_key=api_key_from(options.api_key_env), headers=options.header)


def page_destination(url: str, options: TargetOptions, target: Destination) -> Destination:
    """Where a metrics page is. Raises ConfigError for an address that will not do.

    It is asked with the target's TLS settings, but the target's key and headers go to its own host and port alone.
    """
    page = _destination(url, options)
    same = (page.origin, page.unix_path) == (target.origin, target.unix_path)
    return replace(page, headers=target.headers) if same and not page.headers else page


@asynccontextmanager
async def controlled(destination: Destination) -> AsyncIterator[Control]:
    """Calls beside the load, on connections of their own."""
    async with control_client(destination) as client:
        yield Control(client, destination.request_target)


async def ask_target(destination: Destination, options: TargetOptions, *, try_requests: bool = False) -> TargetFacts:
    """What the target says of itself; see `probe_target`, whose errors are raised."""
    async with controlled(destination) as control:
        return await probe_target(
            control,
            endpoint=options.endpoint,
            model=options.model,
            engine=options.engine,
            try_requests=try_requests,
        )


def _destination(
    url: str, options: TargetOptions, *, api_key: str | None = None, headers: Mapping[str, str] | None = None
) -> Destination:
    return Destination.from_url(
        url,
        api_key=api_key,
        headers=headers,
        ca_file=None if options.ca_file is None else str(options.ca_file),
        client_cert=None if options.client_cert is None else str(options.client_cert),
        client_key=None if options.client_key is None else str(options.client_key),
        insecure=options.insecure,
    )
