"""Server profiles for people: what there is, what it stands for, what is wrong with it."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from loadgen.adapters.profiles.capabilities import capabilities
from loadgen.adapters.profiles.check import differences, objections
from loadgen.adapters.profiles.command import command_line
from loadgen.adapters.profiles.files import ProfileFile, find_profile, load_profile, profile_paths, search_path
from loadgen.adapters.profiles.model import Profile
from loadgen.adapters.profiles.objection import Objection
from loadgen.adapters.profiles.pod import kubernetes_pod
from loadgen.adapters.profiles.render import LOOPBACK, compose_file, shell_command
from loadgen.core.errors import ConfigError
from loadgen.options.experiment import ExperimentFile
from loadgen.options.resolve import resolve
from loadgen.options.sim import SimOptions


class Form(StrEnum):
    """What a profile can be written as."""

    COMMAND = "command"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"


def listed(folders: Sequence[Path]) -> dict[str, Any]:
    """The profiles there are, each in short, and why others cannot be read."""
    found, unreadable = [], []
    for path in profile_paths(search_path(folders)).values():
        try:
            found.append(_in_short(load_profile(path)))
        except ConfigError as error:
            unreadable.append(str(error))
    return {"schema": "loadgen.profiles/1", "profiles": found, "unreadable": unreadable}


def described(name: str, folders: Sequence[Path]) -> dict[str, Any]:
    """All of a profile, its baseline's part included. Raises ConfigError."""
    found = find_profile(name, search_path(folders))
    profile = found.profile
    told = {
        "schema": "loadgen.profile/1",
        **profile.model_dump(mode="json"),
        "baseline": found.baseline,
        "simulated": profile.image is None,
        "capabilities": list(capabilities(profile)),
        "files": [str(file.path) for file in (found.file, found.base) if file is not None],
        "command": None,
    }
    if profile.image is not None:
        line = command_line(profile, host=LOOPBACK, port=str(profile.port))
        told["url"] = f"http://{LOOPBACK}:{profile.port}"
        told["metrics_url"] = told["url"] + profile.metrics
        told["command"] = [*line.program, *line.options]
    return told


def rendered(
    name: str,
    form: Form,
    folders: Sequence[Path],
    *,
    port: int | None = None,
    devices: str = "",
    forced_length: float | None = None,
) -> str:
    """What starts a profile's server. Raises ConfigError for one that is not there or that nothing could start."""
    profile = find_profile(name, search_path(folders)).profile
    chosen = _devices(profile, devices)
    if chosen and form is not Form.COMPOSE:
        raise ConfigError("--devices is for --as compose; a command takes CUDA_VISIBLE_DEVICES, a pod what it is given")
    port = profile.port if port is None else port
    match form:
        case Form.COMMAND:
            return shell_command(profile, port=port, forced_length=forced_length)
        case Form.COMPOSE:
            return compose_file(profile, port=port, devices=chosen, forced_length=forced_length)
        case Form.KUBERNETES:
            return kubernetes_pod(profile, port=port, forced_length=forced_length)


def checked(names: Sequence[str], folders: Sequence[Path]) -> dict[str, Any]:
    """What is wrong with profiles, all of them or those named.

    A baseline is looked for among these, those of the same folder, and those that have a name.
    """
    path = search_path(folders)
    wanted = names or list(profile_paths(path))
    found: list[ProfileFile] = []
    told: list[dict[str, Any]] = []
    for name in wanted:
        try:
            found.append(find_profile(name, path))
        except ConfigError as error:
            told += [{"profile": name, "where": None, "text": line, "fatal": True} for line in str(error).splitlines()]
    named = list(_readable([*path]))
    beside = {folder: [*_readable([folder]), *named] for folder in {each.file.path.parent for each in found}}
    for each in found:
        told += [
            {"profile": each.profile.name, "where": objection.where, "text": objection.text, "fatal": objection.fatal}
            for objection in (*objections(each, [*found, *beside[each.file.path.parent]]), *_simulated(each))
        ]
    return {
        "schema": "loadgen.profiles-check/1",
        "checked": len(wanted),
        "wrong": len({each["profile"] for each in told if each["fatal"]}),
        "faults": sum(each["fatal"] for each in told),
        "objections": told,
    }


def unequal_profiles(experiment: ExperimentFile) -> Iterator[str]:
    """A sentence for each arm whose server is not its baseline's but for speculation, both being started by profile."""
    started = {
        name: find_profile(arm.profile).profile
        for name, arm in experiment.arms.items()
        if arm.profile is not None and arm.server == "profile"
    }
    baseline = started.pop(experiment.baseline, None)
    for name, profile in started.items():
        unlike = () if baseline is None else differences(profile, baseline)
        if unlike:
            yield f"{name}: not the baseline's server in more than speculation: {'; '.join(unlike)}"


def _in_short(found: ProfileFile) -> dict[str, Any]:
    profile = found.profile
    return {
        "name": profile.name,
        "description": profile.description,
        "engine": profile.engine,
        "image": profile.image,
        "model": profile.model,
        "method": profile.method_name,
        "draft_tokens": None if profile.speculation is None else profile.speculation.draft_tokens,
        "gpus": profile.gpus,
        "baseline": found.baseline,
        "simulated": profile.image is None,
        "file": str(found.file.path),
    }


def _devices(profile: Profile, devices: str) -> list[str]:
    chosen = [device.strip() for device in devices.split(",") if device.strip()]
    if chosen and len(chosen) != profile.gpus:
        raise ConfigError(f"--devices: {profile.name} takes {profile.gpus} GPUs, got {len(chosen)}")
    return chosen


def _readable(folders: Sequence[Path]) -> Iterator[ProfileFile]:
    """The profiles of these folders that can be read."""
    for path in profile_paths(folders).values():
        try:
            yield load_profile(path)
        except ConfigError:
            continue


def _simulated(found: ProfileFile) -> Iterator[Objection]:
    """Whether the simulator can stand in, where the profile says how."""
    if not found.profile.simulator:
        return
    try:
        resolve(SimOptions, {"profile": str(found.file.path)}, environment={})
    except ConfigError as error:
        yield Objection(where=found.where("simulator"), text=str(error))
