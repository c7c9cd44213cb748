"""The target that options name, and what it answers."""

from loadgen.adapters.http.control import control_client
from loadgen.adapters.http.destination import Destination
from loadgen.adapters.servers.generic import TargetFacts, probe_target
from loadgen.core.errors import ConfigError
from loadgen.options.target import TargetOptions
from loadgen.wiring.api_key import api_key_from


def destination_of(options: TargetOptions) -> Destination:
    """Where requests go. Raises ConfigError for a URL, key, header or file that will not do; `url` must be given."""
    if options.url is None:
        raise ConfigError("--url: this option is needed")
    return Destination.from_url(
        options.url,
        api_key=api_key_from(options.api_key_env),
        headers=options.header,
        ca_file=None if options.ca_file is None else str(options.ca_file),
        client_cert=None if options.client_cert is None else str(options.client_cert),
        client_key=None if options.client_key is None else str(options.client_key),
        insecure=options.insecure,
    )


async def ask_target(destination: Destination, options: TargetOptions, *, try_requests: bool = False) -> TargetFacts:
    """What the target says of itself; see `probe_target`, whose errors are raised."""
    async with control_client(destination) as client:
        return await probe_target(
            client,
            endpoint=options.endpoint,
            model=options.model,
            try_requests=try_requests,
            locate=destination.request_target,
        )
