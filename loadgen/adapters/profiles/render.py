"""What a profile stands for, in the words of a shell and of Compose."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from loadgen.adapters.profiles.command import CommandLine, command_line
from loadgen.adapters.profiles.container import (
    CACHE,
    PLACES_MEMORY,
    Container,
    HomeOf,
    container_of,
    plain_name,
    takes_nvidia,
)
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.values import REFERENCE
from loadgen.adapters.profiles.yaml_text import as_yaml

LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104 - within the container; what is published is another matter


def shell_command(profile: Profile, *, port: int, forced_length: float | None = None) -> str:
    """A command for a POSIX shell, an option a line. Variables stand in it by name."""
    command = command_line(profile, host=LOOPBACK, port=str(port), forced_length=forced_length)
    lines = [f"{name}={_in_shell(text)}" for name, text in command.environment.items()]
    lines.append(shlex.join((*command.program, *(command.parts[0] if _is_positional(command) else ()))))
    rest = command.parts[1:] if _is_positional(command) else command.parts
    lines += [f"  {shlex.join(part)}" for part in rest]
    return " \\\n".join(lines) + "\n"


def compose_file(
    profile: Profile, *, port: int | str, devices: Sequence[str] = (), forced_length: float | None = None
) -> str:
    """A Compose file with one service, and the volume it keeps weights and graphs in.

    Project and service have the profile's name: that of the folder could be that of other services.
    """
    service = compose_service(profile, port=port, devices=devices, forced_length=forced_length)
    owner = "" if container_of(profile).home.uid is not None else "-of-root"  # whose files keep others out
    volume = {"name": f"loadgen-{CACHE}{owner}"}
    return as_yaml({"name": plain_name(profile), "services": {profile.name: service}, "volumes": {CACHE: volume}})


def compose_service(
    profile: Profile, *, port: int | str, devices: Sequence[str] = (), forced_length: float | None = None
) -> dict[str, Any]:
    """The service, published on `port` of the loopback address alone.

    `port` may be a variable of Compose. `devices` are indices or UUIDs of GPUs; without them it takes as many as the
    profile says.
    """
    command = command_line(profile, host=EVERYWHERE, port=str(profile.port), forced_length=forced_length)
    container = container_of(profile)
    return {
        "image": container.image,
        **_build(container),
        **({"entrypoint": list(command.program)} if not container.starts_program else {}),
        "command": [argument.replace("$", "$$") for argument in command.options],
        "environment": {
            **container.home.environment,
            **{name: REFERENCE.sub(_asked, text) for name, text in command.environment.items()},
        },
        **_user(container.home),
        "ports": [f"{LOOPBACK}:{port}:{profile.port}"],
        "volumes": [f"{CACHE}:{container.home.cache}"],
        **({"shm_size": profile.shared_memory} if profile.shared_memory is not None else {}),
        **({"cap_add": [PLACES_MEMORY]} if not profile.gpus else {}),
        "security_opt": ["no-new-privileges:true"],
        "init": True,
        **_gpus(profile, devices),
        "healthcheck": {
            "test": ["CMD", "curl", "-fsS", f"http://{LOOPBACK}:{profile.port}{profile.health}"],
            "interval": "10s",
            "timeout": "5s",
            "retries": 3,
            "start_period": "20m",
            "start_interval": "5s",
        },
        "logging": {"driver": "json-file", "options": {"max-size": "20m", "max-file": "5"}},
        "stop_grace_period": "30s",
        "restart": "no",
    }


def _is_positional(command: CommandLine) -> bool:
    return not command.parts[0][0].startswith("-")


def _in_shell(text: str) -> str:
    """A value of the environment; what has to be set ends the command when it is not."""
    if REFERENCE.search(text) is None:
        return shlex.quote(text)
    plain = REFERENCE.split(text)[0::3]
    names = [_asked(match) for match in REFERENCE.finditer(text)]
    escaped = [re.sub(r'(["\\`])', r"\\\1", part) for part in plain]
    return '"' + "".join(part for pair in zip(escaped, [*names, ""], strict=True) for part in pair) + '"'


def _asked(match: re.Match[str]) -> str:
    """A reference in the words that a shell and Compose share: without `:?` Compose would go on with an empty text."""
    return f"${{{match[1]}{match[2] or ':?'}}}"


def _build(container: Container) -> dict[str, Any]:
    """How to build an image of our own, which is not to be asked of any registry."""
    if container.dockerfile is None:
        return {}
    return {"build": {"dockerfile_inline": container.dockerfile}, "pull_policy": "never"}


def _user(home: HomeOf) -> dict[str, Any]:
    return {} if home.uid is None else {"user": f"{home.uid}:{home.gid}", "cap_drop": ["ALL"]}


def _gpus(profile: Profile, devices: Sequence[str]) -> dict[str, Any]:
    if not takes_nvidia(profile):
        return {}
    chosen: Mapping[str, Any] = {"device_ids": list(devices)} if devices else {"count": profile.gpus}
    return {
        "deploy": {
            "resources": {"reservations": {"devices": [{"driver": "nvidia", **chosen, "capabilities": ["gpu"]}]}}
        }
    }
