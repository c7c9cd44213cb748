"""A service of a Compose file as a server.

Compose runs in the foreground: it shows the service's log, ends with the service's exit status, and stops it in order
when it is asked to end, which makes it a process like any other. `down` runs before and behind, so that no container of
an earlier accident is in the way and none stays; named volumes, where weights and compiled graphs are, stay.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from loadgen.adapters.launch.process import GRACE_S, PORT, ServerCommand

DOCKER_COMPOSE = ("docker", "compose")
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})  # noqa: S104


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeService:
    """One service, the URL where it is reached, and the profile that it needs.

    `project` names the project that is its own at every start: lower case, digits, `-` and `_`.
    """

    file: Path
    service: str
    project: str
    url: str
    profile: str | None = None

    def command(
        self,
        *,
        port: int | None = None,
        environment: Mapping[str, str],
        secrets: tuple[str, ...] = (),
        grace_s: float = GRACE_S,
        compose: Sequence[str] = DOCKER_COMPOSE,
    ) -> ServerCommand:
        """What brings it up and takes it down. Containers get half of the time that the launcher gives Compose.

        `port` stands for `{port}` in the URL and in the environment, from where a Compose file takes it.
        """
        profile = () if self.profile is None else ("--profile", self.profile)
        base = (*compose, "--file", str(self.file), "--project-name", self.project, *profile)
        patience = ("--timeout", str(int(grace_s / 2)))
        down = (*base, "down", *patience)
        up = (*base, "up", "--no-color", "--no-log-prefix", *patience, "--exit-code-from", self.service, self.service)
        return ServerCommand(
            arguments=up,
            environment=environment,
            url=self.url,
            port=self._own_port() if port is None else port,
            secrets=secrets,
            before=down,
            behind=down,
        )

    def _own_port(self) -> int | None:
        """The port that the URL says, where it is one of this machine."""
        if PORT in self.url:
            return None
        parts = urlsplit(self.url)
        return parts.port if parts.hostname in _THIS_MACHINE else None
