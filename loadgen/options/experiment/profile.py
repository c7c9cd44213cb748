"""An arm that names a server profile: what it is once the profile is read."""

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from loadgen.adapters.profiles.command import command_line, forcing_of
from loadgen.adapters.profiles.container import container_of
from loadgen.adapters.profiles.files import ProfileFile, find_profile, is_path
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.render import LOOPBACK
from loadgen.adapters.yaml_file import FieldError
from loadgen.core.errors import ConfigError

Launch = Literal["process", "compose", "sim"]
"""How the server of a profile comes to run: as a process of this machine, by Docker Compose, or simulated."""
LAUNCHES: tuple[Launch, ...] = get_args(Launch)

_OF_THE_PROFILE = ("url", "command", "sim", "env", "workdir", "health", "forced")


def with_profile(arm: Mapping[str, Any], folder: Path, *, port: str, length: str) -> dict[str, Any]:
    """The fields of an arm by profile, with those that follow from it.

    The profile is named as seen from here. One without an image is simulated whatever the launch. `port` and `length`
    stand for what is not known yet. Raises FieldError for a profile that is not there, and for what an arm cannot say
    beside one.
    """
    for name in _OF_THE_PROFILE:
        if arm.get(name) is not None:
            raise FieldError("expected no such field beside profile, which settles it", name)
    named = as_seen_from(folder, str(arm["profile"]))
    try:
        found = find_profile(named)
    except ConfigError as error:
        raise FieldError(str(error), "profile") from None
    arm = {**arm, "profile": named}
    profile, launch = found.profile, arm.get("launch") or "process"
    if profile.image is None and launch == "compose":
        raise FieldError(f"{profile.name} has no image: it can only be simulated", "profile")
    _check_speculation(arm, found)
    if launch == "sim" or profile.image is None:
        return {**arm, "launch": "sim", "sim": {"profile": str(found.file.path.resolve())}}
    try:
        return {**arm, "launch": launch, **_started(profile, port=port, length=length)}
    except ConfigError as error:
        raise FieldError(str(error), "profile") from None


def image_of(name: str) -> str:
    """The image that a profile's service runs."""
    return container_of(find_profile(name).profile).image


def price_per_hour(profiles: Iterable[str]) -> float | None:
    """What the machine of these profiles costs an hour; None where they do not agree or one does not say."""
    prices = {find_profile(name).profile.price_per_hour for name in profiles}
    return prices.pop() if len(prices) == 1 else None


def gpus_of(name: str) -> int | None:
    """How many GPUs the server of a profile runs on; None on a CPU."""
    return find_profile(name).profile.gpus or None


def as_seen_from(folder: Path, name: str) -> str:
    """A profile as a file in `folder` names it: by path from there, or by name."""
    return str(folder / name) if is_path(name) else name


def _check_speculation(arm: Mapping[str, Any], found: ProfileFile) -> None:
    """What an arm repeats of its profile has to agree with it."""
    speculation = found.profile.speculation
    tokens = None if speculation is None else speculation.draft_tokens
    for name, value in (("method", found.profile.method_name), ("draft_tokens", tokens)):
        if arm.get(name) is not None and arm[name] != value:
            raise FieldError(f"the profile {found.profile.name} says {value}; leave it out, or name another one", name)


def _started(profile: Profile, *, port: str, length: str) -> dict[str, Any]:
    """The fields of an arm whose server is started. Raises ConfigError for a profile that nothing could start."""
    line = command_line(profile, host=LOOPBACK, port=port)
    told = {"command": [*line.program, *line.options], "env": dict(line.environment), "health": profile.health}
    if profile.speculation is None:
        return told
    forcing = forcing_of(profile, length)
    return told | {
        "method": profile.speculation.method.value,
        "draft_tokens": profile.speculation.draft_tokens,
        "forced": {"arguments": [*chain.from_iterable(forcing.parts)], "env": dict(forcing.environment)},
    }
