"""What a profile stands for, in the words of a shell, of Compose and of Kubernetes."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from loadgen.adapters.profiles.command import CommandLine, command_line
from loadgen.adapters.profiles.container import HomeOf, container_of, takes_nvidia
from loadgen.adapters.profiles.model import REFERENCE, Profile

LOOPBACK, EVERYWHERE = "127.0.0.1", "0.0.0.0"  # noqa: S104 - within the container; what is published is another matter
_CACHE = "model-cache"
_SECRETS = "server-secrets"


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
    """A Compose file with one service, named after the profile, and the volume it keeps weights and graphs in."""
    service = compose_service(profile, port=port, devices=devices, forced_length=forced_length)
    owner = "" if container_of(profile).home.uid is not None else "-of-root"  # whose files keep others out
    volume = {"name": f"loadgen-{_CACHE}{owner}"}
    return _yaml({"services": {profile.name: service}, "volumes": {_CACHE: volume}})


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
        **({"build": {"dockerfile_inline": container.dockerfile}} if container.dockerfile is not None else {}),
        **({"entrypoint": list(command.program)} if not container.starts_program else {}),
        "command": [argument.replace("$", "$$") for argument in command.options],
        "environment": {**container.home.environment, **command.environment},
        **_user(container.home),
        "ports": [f"{LOOPBACK}:{port}:{profile.port}"],
        "volumes": [f"{_CACHE}:{container.home.cache}"],
        **({"shm_size": profile.shared_memory} if profile.shared_memory is not None else {}),
        **({"cap_add": ["SYS_NICE"]} if not profile.gpus else {}),  # to place memory beside its cores
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
        "stop_grace_period": "30s",
        "restart": "no",
    }


def kubernetes_pod(profile: Profile, *, port: int, forced_length: float | None = None) -> str:
    """A Pod that listens on `port`; secrets come from a Secret of the namespace, weights stay in a claim."""
    command = command_line(profile, host=EVERYWHERE, port=str(port), forced_length=forced_length)
    container = container_of(profile)
    probe = {"httpGet": {"path": profile.health, "port": "http"}, "timeoutSeconds": 5}
    server: dict[str, Any] = {
        "name": "server",
        "image": container.image,
        **({"command": list(command.program)} if not container.starts_program else {}),
        "args": [argument.replace("$(", "$$(") for argument in command.options],
        "env": [_in_pod(*variable) for variable in {**container.home.environment, **command.environment}.items()],
        "ports": [{"name": "http", "containerPort": port}],
        "startupProbe": probe | {"periodSeconds": 5, "failureThreshold": 240},
        "readinessProbe": probe | {"periodSeconds": 5},
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": _CACHE, "mountPath": container.home.cache}],
    }
    volumes: list[dict[str, Any]] = [{"name": _CACHE, "persistentVolumeClaim": {"claimName": _CACHE}}]
    if profile.gpus:
        server["resources"] = {"limits": {"nvidia.com/gpu": profile.gpus}}
    if profile.shared_memory is not None:
        server["volumeMounts"].append({"name": "shared-memory", "mountPath": "/dev/shm"})  # noqa: S108
        size = profile.shared_memory.upper() + "i"
        volumes.append({"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
    uid, home = container.home.uid, container.home
    user = {} if uid is None else {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": home.gid, "fsGroup": home.gid}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": re.sub(r"[^a-z0-9-]", "-", profile.name),
            "labels": {"app.kubernetes.io/name": profile.name, "app.kubernetes.io/component": "server"},
        },
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,  # a Service called vllm would set VLLM_PORT
            **({"securityContext": user} if user else {}),
            "containers": [server],
            "volumes": volumes,
        },
    }
    built = (
        "" if container.dockerfile is None else _as_comment(f"Build {container.image} from:\n{container.dockerfile}")
    )
    return built + _yaml(pod)


def _is_positional(command: CommandLine) -> bool:
    return not command.parts[0][0].startswith("-")


def _in_shell(text: str) -> str:
    """A value of the environment; what has to be set ends the command when it is not."""
    if REFERENCE.search(text) is None:
        return shlex.quote(text)
    plain = REFERENCE.split(text)[0::3]
    names = [f"${{{match[1]}{':-' if match[2] else ':?'}}}" for match in REFERENCE.finditer(text)]
    escaped = [re.sub(r'(["\\`])', r"\\\1", part) for part in plain]
    return '"' + "".join(part for pair in zip(escaped, [*names, ""], strict=True) for part in pair) + '"'


def _in_pod(name: str, text: str) -> dict[str, Any]:
    match = REFERENCE.fullmatch(text)
    if match is None:
        return {"name": name, "value": text}
    source = {"name": _SECRETS, "key": match[1], "optional": match[2] is not None}
    return {"name": name, "valueFrom": {"secretKeyRef": source}}


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


def _as_comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


class _Plain(yaml.SafeDumper):
    """Writes what appears twice twice, and texts with several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _str(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Plain.add_representer(str, _str)


def _yaml(document: Mapping[str, Any]) -> str:
    return str(yaml.dump(document, Dumper=_Plain, sort_keys=False, width=10_000, allow_unicode=True))
