"""From an arm of an experiment to what starts and stops its server."""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.http.health import missing_for_readiness
from loadgen.adapters.launch.attach import AttachLauncher
from loadgen.adapters.launch.compose import ComposeService, check_compose, env_file_in, variables_in
from loadgen.adapters.launch.process import PORT, ProcessLauncher, ServerCommand
from loadgen.adapters.launch.waiting import Progress, Waiting
from loadgen.adapters.profiles.container import takes_nvidia
from loadgen.adapters.profiles.files import find_profile
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.render import compose_file
from loadgen.adapters.store.files import SHORTEST_SECRET, whole_file
from loadgen.core.errors import ConfigError
from loadgen.core.redaction import names_secret
from loadgen.engine.ports import Launched, Launcher
from loadgen.options.experiment import ArmSection
from loadgen.options.fields import flag_of
from loadgen.options.resolve import ENVIRONMENT_PREFIX
from loadgen.options.sim import SimOptions
from loadgen.report.words import printable

_HEALTH = "/health"
_PORT_VARIABLE = "LOADGEN_SERVER_PORT"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_DEVICE = re.compile(r"\d+|(?:GPU|MIG)-[\w/-]+", re.ASCII)
_ATTACH_TIMEOUT_S = 60.0  # a server that is said to run already


def launcher_of(
    arm: ArmSection,
    *,
    log: Path,
    kept: Path,
    start_timeout_s: float,
    forced_length: int | None = None,
    start: int = 1,
    api_key: str | None = None,
    variables: Mapping[str, str] = os.environ,
    progress: Progress = lambda _waited_s, _last_line: None,
    warn: Callable[[str], None] = lambda _: None,
) -> Launcher:
    """What starts the arm's server once.

    `start` is its number among the starts of an experiment. `log` takes what it writes. `kept` is a file, the same at
    every start of this arm, by which a server that an accident left behind is found. `variables` are the environment
    that the server inherits and that the arm names variables of. A server that runs already gets at most a minute.
    Raises ConfigError for a program that is not there and a variable that is not set.
    """
    path = _HEALTH if arm.health is None else arm.health

    async def ask(url: str) -> str | None:
        return await missing_for_readiness(Destination.from_url(url, api_key=api_key), path)

    def waiting(timeout_s: float) -> Waiting:
        return Waiting(ask=ask, timeout_s=timeout_s, progress=progress)

    match arm.server:
        case "url":
            url = arm.url_from(variables)
            shown = Destination.from_url(url).url
            return AttachLauncher(url, shown=shown, waiting=waiting(min(start_timeout_s, _ATTACH_TIMEOUT_S)))
        case "profile" if arm.launch == "compose":
            return _composed(
                arm,
                variables,
                log=log,
                kept=kept,
                waiting=waiting(start_timeout_s),
                forced_length=forced_length,
                warn=warn,
            )
        case "profile":
            command = _engine_command(arm, variables, forced_length=forced_length)
        case "command":
            command = _own_command(arm, variables, forced_length=forced_length)
        case "sim":
            command = _sim_command(arm.sim_values(forced_length=forced_length, start=start), variables)
    return ProcessLauncher(command, log=log, kept=kept, waiting=waiting(start_timeout_s), warn=warn)


def start_words(arm: ArmSection) -> str:
    """How the arm's server comes to run, for people: a command line with `{port}`, without secrets."""
    match arm.server:
        case "url":
            return f"runs at {arm.stored()['url']}"
        case "sim":
            return _in_words(("loadgen", "sim", "--port", PORT, *_sim_arguments(arm.sim_values())))
        case "profile" if arm.launch == "compose":
            stored = arm.stored()
            return f"Docker Compose with profile {stored['profile']}, image {stored['image']}"
        case _:
            return _in_words(arm.arguments())


def _in_words(arguments: Iterable[str]) -> str:
    return shlex.join(arguments).replace(shlex.quote(PORT), PORT)


@asynccontextmanager
async def launched(launcher: Launcher) -> AsyncIterator[Launched]:
    """The server of a launcher: ready within the block, ended behind it."""
    server = await launcher.start()
    try:
        yield server
    finally:
        await launcher.stop()


def _own_command(arm: ArmSection, variables: Mapping[str, str], *, forced_length: int | None) -> ServerCommand:
    environment = {**variables, **arm.environment(variables, forced_length=forced_length)}
    inherited = [value for name, value in environment.items() if names_secret(name)]
    return ServerCommand(
        arguments=arm.arguments(forced_length=forced_length),
        environment=environment,
        folder=Path() if arm.workdir is None else arm.workdir,
        secrets=_as_written([*arm.secrets(variables), *inherited]),
    )


def _engine_command(arm: ArmSection, variables: Mapping[str, str], *, forced_length: int | None) -> ServerCommand:
    """The engine of a profile on this machine. Raises ConfigError that says what else could start it."""
    assert arm.profile is not None
    command = _own_command(arm, variables, forced_length=forced_length)
    program = command.arguments[0]
    if shutil.which(program, path=command.environment.get("PATH")) is None:
        raise ConfigError(
            f"{program} is not on the PATH; install the engine, or say `launch: compose` to run its image or"
            " `launch: sim` to simulate it"
        )
    return replace(command, gpu=takes_nvidia(find_profile(arm.profile).profile))


def _composed(
    arm: ArmSection,
    variables: Mapping[str, str],
    *,
    log: Path,
    kept: Path,
    waiting: Waiting,
    forced_length: int | None,
    warn: Callable[[str], None],
) -> Launcher:
    """The profile's service, in a Compose file of its own beside the log, with the variables of the `.env` here.

    Its project is the same at every start of this arm, so that a start ends what an accident left behind.
    """
    assert arm.profile is not None
    profile = find_profile(arm.profile).profile
    check_compose(variables)
    file, env_file = log.parent / "compose.yaml", env_file_in(Path())
    service = ComposeService(
        file=file,
        service=profile.name,
        project=f"loadgen-{sha256(str(kept.resolve()).encode()).hexdigest()[:12]}",
        url=f"http://127.0.0.1:{PORT}",
        env_file=env_file,
    )
    known = [*variables.items(), *({} if env_file is None else variables_in(env_file)).items()]
    inherited = [value for name, value in known if names_secret(name)]
    command = service.command(
        environment={**variables, _PORT_VARIABLE: PORT}, secrets=_as_written([*arm.secrets(variables), *inherited])
    )
    text = compose_file(
        profile, port=f"${{{_PORT_VARIABLE}}}", devices=_devices(profile, variables), forced_length=forced_length
    )
    return _WithFile(ProcessLauncher(command, log=log, kept=kept, waiting=waiting, warn=warn), file=file, text=text)


def _devices(profile: Profile, variables: Mapping[str, str]) -> list[str]:
    """The GPUs for a container: of those visible here the first, as a process would take them; none where all are.

    Raises ConfigError when fewer are visible than the profile takes.
    """
    told = variables.get(_VISIBLE)
    if told is None or not takes_nvidia(profile):
        return []
    named = (device.strip() for device in told.split(","))
    visible = list(takewhile(_DEVICE.fullmatch, named))  # CUDA, too, sees none behind one that is none
    if len(visible) < profile.gpus:
        raise ConfigError(
            f"{profile.name} takes {profile.gpus} GPU{'' if profile.gpus == 1 else 's'}, and"
            f" {_VISIBLE}={printable(told)} names {len(visible)} by index or UUID"
        )
    return visible[: profile.gpus]


class _WithFile:
    """A launcher whose command reads a file, written when it is started."""

    def __init__(self, launcher: ProcessLauncher, *, file: Path, text: str) -> None:
        self._launcher, self._file, self._text = launcher, file, text
        self.stop, self.exited = launcher.stop, launcher.exited

    async def start(self) -> Launched:
        """See `Launcher.start`; raises StoreError when the file cannot be written."""
        with whole_file(self._file) as file:
            file.write(self._text.encode())
        return await self._launcher.start()


def _sim_command(options: Mapping[str, Any], variables: Mapping[str, str]) -> ServerCommand:
    """The simulator with these options; those that the environment holds for the load do not reach it."""
    return ServerCommand(
        arguments=(sys.executable, "-m", "loadgen", "sim", "--port", PORT, *_sim_arguments(options)),
        environment={name: value for name, value in variables.items() if not name.startswith(ENVIRONMENT_PREFIX)},
    )


def _sim_arguments(options: Mapping[str, Any]) -> list[str]:
    fields = SimOptions.model_fields
    return [part for name, value in options.items() for part in _as_arguments(name, fields[name], value)]


def _as_arguments(name: str, option: FieldInfo, value: Any) -> list[str]:
    """An option's value, as a file may give it, on a command line."""
    flag = flag_of(name, option)
    match value:
        case bool():
            return [] if value is option.default else [flag if value else "--no-" + flag.removeprefix("--")]
        case None:
            return []
        case dict():
            return [flag, json.dumps(value)]
        case [[_, _, _], *_]:  # ranges of batch sizes, as vLLM writes them
            return [flag, ",".join(f"{first}-{last}:{tokens}" for first, last, tokens in value)]
        case list():
            return [flag, ",".join(map(str, value))]
        case _:
            return [flag, str(value)]


def _as_written(secrets: Iterable[str]) -> tuple[str, ...]:
    """As they are and as JSON has them, the longest first; dummies such as `EMPTY` are none."""
    known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET}
    return tuple(sorted(known | {json.dumps(secret)[1:-1] for secret in known}, key=len, reverse=True))
