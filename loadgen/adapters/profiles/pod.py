"""The Kubernetes pod that a profile stands for."""

from collections.abc import Iterator, Mapping
from typing import Any

from loadgen.adapters.profiles.command import command_line
from loadgen.adapters.profiles.container import CACHE, PLACES_MEMORY, HomeOf, container_of, plain_name, takes_nvidia
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.render import EVERYWHERE
from loadgen.adapters.profiles.values import REFERENCE
from loadgen.adapters.profiles.yaml_text import as_comment, as_yaml
from loadgen.core.errors import ConfigError

_SECRETS = "server-secrets"


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
        "env": list(_in_pod(profile, {**container.home.environment, **command.environment})),
        "ports": [{"name": "http", "containerPort": port}],
        "startupProbe": probe | {"periodSeconds": 5, "failureThreshold": 240},
        "readinessProbe": probe | {"periodSeconds": 5},
        "securityContext": {"allowPrivilegeEscalation": False, **_capabilities(profile, container.home)},
        "volumeMounts": [{"name": CACHE, "mountPath": container.home.cache}],
    }
    volumes: list[dict[str, Any]] = [{"name": CACHE, "persistentVolumeClaim": {"claimName": CACHE}}]
    if takes_nvidia(profile):
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
            "name": plain_name(profile),
            "labels": {"app.kubernetes.io/name": profile.name, "app.kubernetes.io/component": "server"},
        },
        "spec": {
            "restartPolicy": "Never",
            "enableServiceLinks": False,  # a Service called vllm would set VLLM_PORT
            "automountServiceAccountToken": False,
            "securityContext": {**user, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [server],
            "volumes": volumes,
        },
    }
    built = "" if container.dockerfile is None else as_comment(f"Build {container.image} from:\n{container.dockerfile}")
    return built + as_yaml(pod)


def _in_pod(profile: Profile, environment: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Variables, those that a profile names from the Secret: a pod would hand on `${NAME}` within a text as it is."""
    for name, text in environment.items():
        match = REFERENCE.fullmatch(text)
        if match is not None:
            source = {"name": _SECRETS, "key": match[1], "optional": match[2] is not None}
            yield {"name": name, "valueFrom": {"secretKeyRef": source}}
        elif REFERENCE.search(text):
            raise ConfigError(f"{profile.name}: environment.{name}: in a pod ${{NAME}} has to be the whole of a value")
        else:
            yield {"name": name, "value": text}


def _capabilities(profile: Profile, home: HomeOf) -> dict[str, Any]:
    """As the Compose service has them."""
    none = {} if home.uid is None else {"drop": ["ALL"]}
    nice = {} if profile.gpus else {"add": [PLACES_MEMORY]}
    return {"capabilities": none | nice} if none or nice else {}
