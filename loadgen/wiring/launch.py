"""From what an arm says of its server to what starts and stops it."""

import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.health import missing_for_readiness
from loadgen.adapters.launch.attach import AttachLauncher
from loadgen.adapters.launch.compose import ComposeService
from loadgen.adapters.launch.process import PORT, ProcessLauncher, ServerCommand
from loadgen.adapters.launch.waiting import Progress, Waiting
from loadgen.adapters.store.files import SHORTEST_SECRET
from loadgen.core.errors import ConfigError
from loadgen.engine.ports import Launched, Launcher
from loadgen.options.fields import flag_of
from loadgen.options.resolve import ENVIRONMENT_PREFIX, resolve
from loadgen.options.sim import SimOptions

HEALTH = "/health"
START_TIMEOUT_S = 1200.0
ATTACH_TIMEOUT_S = 30.0

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_NAME = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.IGNORECASE)
_SHELL_WORDS = frozenset({"&&", "||", "|", "|&", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>"})
_SIM_OWN = frozenset({"host", "port", "until_stdin_closes", "json_output"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWay:
    """How a server comes to run: exactly one of `url`, `command`, `sim`, `compose` and `profile`.

    `${NAME}` in the URL, the command and the values of `env` stands for a variable of this process's environment, and
    what it holds is shown nowhere. `{port}` in the command or in `env` stands for `port`, or without one for a free
    port. `sim` are options of the simulator with underscores in their names. `env` adds to the environment, `folder` is
    where it runs, `gpu` says that it needs one, `health` is the page that is there once it is ready.
    `start_timeout_s` None: what is usual for its kind.
    """

    url: str | None = None
    command: str | Sequence[str] | None = None
    sim: Mapping[str, Any] | None = None
    compose: ComposeService | None = None
    profile: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()
    port: int | None = None
    gpu: bool = False
    health: str = HEALTH
    start_timeout_s: float | None = None


def launcher_of(
    way: ServerWay,
    *,
    log: Path,
    kept: Path | None = None,
    api_key: str | None = None,
    progress: Progress = lambda _waited_s, _last_line: None,
    warn: Callable[[str], None] = lambda _: None,
    environment: Mapping[str, str] | None = None,
) -> Launcher:
    """What starts the server once.

    `log` takes its output. `kept` is a file, the same for every start of this arm, by which what an accident left
    behind is found. Raises ConfigError for what cannot be meant.
    """
    given = os.environ if environment is None else environment
    usual_s = START_TIMEOUT_S if way.url is None else ATTACH_TIMEOUT_S

    async def ask(url: str) -> str | None:
        return await missing_for_readiness(Destination.from_url(url, api_key=api_key), way.health)

    timeout_s = usual_s if way.start_timeout_s is None else way.start_timeout_s
    waiting = Waiting(ask=ask, timeout_s=timeout_s, progress=progress)
    if way.url is not None:
        url = expanded(way.url, given)
        return AttachLauncher(url, shown=Destination.from_url(url).url, waiting=waiting)
    command = _server_command(way, given, () if api_key is None else (api_key,))
    return ProcessLauncher(command, log=log, waiting=waiting, kept=kept, warn=warn)


@asynccontextmanager
async def launched(launcher: Launcher) -> AsyncIterator[Launched]:
    """The server of a launcher, ready within the block and ended behind it."""
    server = await launcher.start()
    try:
        yield server
    finally:
        await launcher.stop()


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """The text with `${NAME}` replaced. Raises ConfigError for a variable that is not set."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in environment:
            raise ConfigError(f"{text}: expected {found[1]} in the environment, where it is not set")
        return environment[found[1]]

    return _VARIABLE.sub(value, text)


def sim_arguments(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Options of `loadgen sim`, by field name, as arguments. Raises ConfigError that names each wrong one."""
    fields = SimOptions.model_fields
    for name in options:
        if name in _SIM_OWN or name not in fields:
            close = get_close_matches(name, fields.keys() - _SIM_OWN, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"sim: {name!r} is no option of the simulator that can be set here{hint}")
    resolve(SimOptions, options, environment={})
    return tuple(part for name, value in options.items() for part in _as_arguments(name, fields[name], value))


def _as_arguments(name: str, option: FieldInfo, value: Any) -> list[str]:
    flag = flag_of(name, option)
    match value:
        case bool():
            return [] if value == option.default else [flag if value else "--no-" + flag.removeprefix("--")]
        case None:
            return []
        case dict():
            return [flag, json.dumps(value)]
        case [[_, *_], *_]:
            return [flag, ",".join(f"{first}-{last}:{tokens}" for first, last, tokens in value)]
        case list() | tuple():
            return [part for item in value for part in (flag, str(item))]
        case _:
            return [flag, str(value)]


def _server_command(way: ServerWay, given: Mapping[str, str], secrets: tuple[str, ...]) -> ServerCommand:
    if way.profile is not None:
        raise ConfigError(f"profile {way.profile!r}: no such profile")
    environment = {**given, **{name: expanded(value, given) for name, value in way.env.items()}}
    hidden = _forms((*secrets, *_secrets(way, given, environment)))
    if way.sim is not None:
        return ServerCommand(
            arguments=(sys.executable, "-m", "loadgen", "sim", "--port", PORT, *sim_arguments(way.sim)),
            environment={k: v for k, v in environment.items() if not k.startswith(ENVIRONMENT_PREFIX)},
            folder=way.folder,
            port=way.port,
            secrets=hidden,
        )
    if way.compose is not None:
        service = replace(way.compose, url=expanded(way.compose.url, given))
        return service.command(port=way.port, environment=environment, secrets=hidden)
    shown = _arguments(way.command)
    return ServerCommand(
        arguments=tuple(expanded(argument, given) for argument in shown),
        shown=shown,
        environment=environment,
        folder=way.folder,
        port=way.port,
        gpu=way.gpu,
        secrets=hidden,
    )


def _arguments(command: str | Sequence[str] | None) -> tuple[str, ...]:
    if command is None:
        raise ConfigError("expected one of url, command, sim, compose and profile")
    try:
        arguments = tuple(shlex.split(command) if isinstance(command, str) else map(str, command))
    except ValueError as fault:
        raise ConfigError(f"command: expected words as a shell would read them: {fault}") from None
    if not arguments:
        raise ConfigError("command: expected a program and its arguments, got nothing")
    for word in arguments:
        if isinstance(command, str) and word in _SHELL_WORDS:
            raise ConfigError(f"command: {word!r} means something to a shell only, and none runs the command")
    return arguments


def _secrets(way: ServerWay, given: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """What stands for `${NAME}`, and what variables hold whose names say that it is secret."""
    command = () if way.command is None else (way.command,) if isinstance(way.command, str) else way.command
    named = {name for text in (*command, *way.env.values()) for name in _VARIABLE.findall(text)}
    inherited = [value for name, value in environment.items() if _SECRET_NAME.search(name)]
    return [*(given[name] for name in named if name in given), *inherited]


def _forms(secrets: Sequence[str]) -> tuple[str, ...]:
    """As they are and as they stand in JSON, the longest first; dummies such as `EMPTY` are none."""
    known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
    return tuple(sorted(known | {json.dumps(secret)[1:-1] for secret in known}, key=len, reverse=True))
