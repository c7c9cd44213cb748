"""A service of a Compose file as a server.

Compose runs in the foreground: it shows the service's log, ends with the service's exit status, and stops it in order
when it is asked to end, which makes it a process like any other. `down` runs before and behind, so that no container of
an earlier accident is in the way and none stays; named volumes, where weights and compiled graphs are, stay.
"""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from loadgen.adapters.launch.process import GRACE_S, PORT, ServerCommand
from loadgen.core.errors import ConfigError

DOCKER_COMPOSE = ("docker", "compose")
ENV_FILE = ".env"
"""Where Compose looks for variables, beside the file it is given; people keep theirs where they call it from."""

_SETTING = re.compile(r"\s*(?:export\s+)?(\w+)\s*[=:]\s*(.*?)\s*")
_VERSION_S = 30.0
_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})  # noqa: S104


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeService:
    """One service, the URL where it is reached, and the profile that it needs.

    `project` names the project that is its own at every start: lower case, digits, `-` and `_`. `env_file` holds
    variables that the environment does not.
    """

    file: Path
    service: str
    project: str
    url: str
    profile: str | None = None
    env_file: Path | None = None

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
        variables = () if self.env_file is None else ("--env-file", str(self.env_file))
        base = (*compose, *variables, "--file", str(self.file), "--project-name", self.project, *profile)
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


def env_file_in(folder: Path) -> Path | None:
    """The file of variables there, whole path; None where there is none."""
    file = folder.resolve() / ENV_FILE
    return file if file.is_file() else None


def variables_in(file: Path) -> dict[str, str]:
    """The variables of such a file. Raises ConfigError when it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{file}: expected text in UTF-8 that can be read") from None
    settings = filter(None, map(_SETTING.fullmatch, text.splitlines()))
    return {setting[1]: _unquoted(setting[2]) for setting in settings}


def check_compose(environment: Mapping[str, str], compose: Sequence[str] = DOCKER_COMPOSE) -> None:
    """Raises ConfigError where Docker or its Compose plugin cannot be called."""
    needed = "launch: compose takes Docker with its Compose plugin"
    if shutil.which(compose[0], path=environment.get("PATH")) is None:
        raise ConfigError(f"{needed}, and there is no `{compose[0]}` here")
    line = (*compose, "version")
    try:
        done = subprocess.run(  # noqa: S603
            line, capture_output=True, text=True, timeout=_VERSION_S, env=dict(environment)
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise ConfigError(f"{needed}; `{' '.join(line)}` cannot be run: {fault}") from None
    if done.returncode != 0:
        said = next(iter((done.stderr.strip() or done.stdout.strip()).splitlines()), f"exit status {done.returncode}")
        raise ConfigError(
            f"{needed}; `{' '.join(line)}` says: {said.rstrip('.')}. Install the plugin, which Docker's packages call"
            " docker-compose-plugin"
        )


def _unquoted(value: str) -> str:
    """A value as Compose passes it on: without its quotes, or without the comment behind it."""
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return re.split(r"\s#", value, maxsplit=1)[0]
