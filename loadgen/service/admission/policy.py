"""What the settings of the service let a run do."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.profiles.files import find_profile
from loadgen.core.errors import ConfigError
from loadgen.options.serve import ServeOptions
from loadgen.service.admission.addresses import AllowList
from loadgen.service.admission.limits import Limits
from loadgen.service.admission.targets import Resolver, resolve_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The allowed servers, files, variables and loads."""

    hosts: AllowList
    targets: Mapping[str, str]
    files: Path
    environment: frozenset[str]
    launch: bool
    limits: Limits
    resolve: Resolver = resolve_name

    @classmethod
    def of(cls, options: ServeOptions, *, resolve: Resolver = resolve_name) -> "Policy":
        """Raises ConfigError for a list or a target that cannot be read. Hosts of named targets are allowed."""
        named = [_host_and_port(name, url) for name, url in options.target.items()]
        return cls(
            hosts=AllowList.parse([*options.allow_host, *named]),
            targets=dict(options.target),
            files=options.data_dir / "files",
            environment=frozenset(options.allow_env),
            launch=options.allow_launch,
            limits=Limits(
                concurrency=options.max_concurrency, rate_rps=options.max_rate, run_time_s=options.max_run_time
            ),
            resolve=resolve,
        )

    def url_of(self, name: str) -> str:
        """Where the server of that name is: as the settings say, else where its profile listens on this machine.

        Raises ConfigError for a name that nothing has.
        """
        if name in self.targets:
            return self.targets[name]
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise ConfigError("expected the name of a target or of a server profile")
        return f"http://127.0.0.1:{find_profile(name).profile.port}"


def _host_and_port(name: str, url: str) -> str:
    try:
        destination = Destination.from_url(url)
    except ConfigError as error:
        raise ConfigError(f"--target: {name}: {error}") from None
    host = f"[{destination.host}]" if ":" in destination.host else destination.host
    return f"{host}:{destination.port}"
