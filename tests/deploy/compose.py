"""The files for containers as the real Compose reads them, and the Dockerfile as Docker does."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "docker-compose.yml"
_BINARY = Path(sys.executable).with_name("docker-compose")


def compose(*arguments: str, files: tuple[Path, ...] = (MAIN,), **environment: str) -> str:
    """What `docker compose` prints, with nothing from this machine's environment or .env but what is given.

    There is a password for an administrator, without which compose.admin.yml is refused.
    """
    line = [str(_BINARY), "--env-file", os.devnull, "--project-directory", str(ROOT)]
    line += [part for file in files for part in ("--file", str(file))]
    variables = {"PATH": "/nowhere", "GRAFANA_ADMIN_PASSWORD": "of-a-test", **environment}
    done = subprocess.run([*line, *arguments], capture_output=True, text=True, timeout=120, env=variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def project(*profiles: str, files: tuple[Path, ...] = (MAIN,), **environment: str) -> dict[str, Any]:
    """The whole project with these profiles, all variables and anchors resolved. Leave it as it is: it is kept."""
    chosen = [part for profile in profiles for part in ("--profile", profile)]
    return json.loads(compose(*chosen, "config", "--format", "json", files=files, **environment))  # type: ignore[no-any-return]


def services(*profiles: str, files: tuple[Path, ...] = (MAIN,), **environment: str) -> dict[str, dict[str, Any]]:
    """Its services by name."""
    return project(*profiles, files=files, **environment)["services"]  # type: ignore[no-any-return]


@cache
def all_services() -> Mapping[str, dict[str, Any]]:
    """Every service of docker-compose.yml."""
    return services("*")


@cache
def instructions() -> tuple[tuple[str, str], ...]:
    """The Dockerfile's instructions in order, lines that continue put together."""
    return tuple(_instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")))


def image_of(target: str) -> dict[str, str]:
    """The last ENTRYPOINT, CMD, USER, WORKDIR and HEALTHCHECK of a stage, taken over from those it stands on."""
    stages: dict[str, dict[str, str]] = {}
    settings: dict[str, str] = {}
    for name, rest in instructions():
        if name == "FROM":
            image, _, stage = (part.strip() for part in re.split(r"\s+(AS)\s+", rest))
            settings = stages[stage] = dict(stages.get(image, {}))
        else:
            settings[name] = rest
    return stages[target]


def words_of(setting: str) -> list[str]:
    """The exec form of an instruction. Raises ValueError for the shell form, which puts a shell before the program."""
    found = json.loads(setting)
    if not isinstance(found, list):
        raise ValueError(setting)
    return found


def stage(target: str) -> list[tuple[str, str]]:
    """The instructions of one stage."""
    found: list[tuple[str, str]] = []
    inside = False
    for name, rest in instructions():
        if name == "FROM":
            inside = shlex.split(rest)[-1] == target
        elif inside:
            found.append((name, rest))
    return found


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        name, _, rest = line.partition(" ")
        yield name, rest.strip()
