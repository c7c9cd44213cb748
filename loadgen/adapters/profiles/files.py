"""Profiles found by name or path, and read."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from loadgen.adapters.profiles.model import Arm, Profile
from loadgen.adapters.profiles.values import NAME
from loadgen.adapters.yaml_file import YamlFile, load_yaml, validated
from loadgen.core.errors import ConfigError

DIRECTORY_VARIABLE = "LOADGEN_PROFILES_DIR"
_SUFFIX = ".yaml"
_PACKAGE = Path(__file__).parents[2]
_SHIPPED = _PACKAGE / "server_profiles"  # in a wheel
_BESIDE = _PACKAGE.parent / "server_profiles"  # in the repository


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFile:
    """A profile and the file it stands in, to say where a value came from; `base` is the file of its baseline."""

    profile: Profile
    file: YamlFile
    base: YamlFile | None = None

    @property
    def baseline(self) -> str | None:
        """The profile that it is, but for its speculation; None for one that stands for itself."""
        return None if self.base is None else str(self.file.values["baseline"])

    def where(self, *keys: str | int) -> str:
        """`file:line: a.b`, in the file that says it."""
        files = [self.file] if self.base is None else [self.file, self.base]
        depths = range(len(keys), 0, -1)
        holder = (file for depth in depths for file in files if keys[:depth] in file.lines)
        return next(holder, self.file).where(*keys)


def search_path(first: Sequence[Path] = (), variables: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Folders in which profiles are looked for: those given, those of LOADGEN_PROFILES_DIR, those that are shipped."""
    named = (Path(part) for part in variables.get(DIRECTORY_VARIABLE, "").split(os.pathsep) if part)
    return (*first, *named, _SHIPPED if _SHIPPED.is_dir() else _BESIDE)


def profile_paths(folders: Sequence[Path]) -> dict[str, Path]:
    """Every profile there is, by name and in order of names; an earlier folder hides the same name in a later one.

    Raises ConfigError for a folder that cannot be read.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        for path in _listed(folder):
            found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def is_path(name: str) -> bool:
    """Whether a profile is named by its file."""
    return os.sep in name or name.endswith(_SUFFIX)


def find_profile(name: str, folders: Sequence[Path] | None = None) -> ProfileFile:
    """A profile by its name, or by the path of its file. Raises ConfigError for what is not there or wrong."""
    if is_path(name):
        return load_profile(Path(name))
    folders = search_path() if folders is None else folders
    paths = profile_paths(folders)
    if name not in paths:
        close = get_close_matches(name, paths, n=1)
        hint = f"did you mean {close[0]}?" if close else "`loadgen profiles list` shows those there are"
        raise ConfigError(f"no such profile: {name!r} in {', '.join(map(str, folders))}; {hint}")
    return load_profile(paths[name])


def load_profile(path: Path) -> ProfileFile:
    """Reads a profile. Its baseline stands in the same folder, or where profiles are looked for by name.

    Raises ConfigError that names file, line and field, and what was expected there.
    """
    file = load_yaml(path)
    if "baseline" not in file.values:
        profile = validated(file, Profile)
        _check_name(file, profile.name)
        return ProfileFile(profile=profile, file=file)
    arm = validated(file, Arm)
    _check_name(file, arm.name)
    folders = (path.parent, *search_path())
    named = NAME.fullmatch(arm.baseline) is not None and not is_path(arm.baseline)
    candidates = [folder / f"{arm.baseline}{_SUFFIX}" for folder in folders] if named else []
    base_path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if base_path is None:
        raise ConfigError(
            f"{file.where('baseline')}: expected the name of a profile beside this one or among the shipped ones, got"
            f" {arm.baseline!r}"
        )
    base = load_yaml(base_path)
    if "baseline" in base.values or "speculation" in base.values:
        raise ConfigError(
            f"{file.where('baseline')}: expected a profile without speculation, {arm.baseline!r} has some"
        )
    whole = validated(base, Profile)
    told = {"name": arm.name, "description": arm.description, "speculation": arm.speculation}
    profile = whole.model_copy(update=told | {"simulator": whole.simulator | arm.simulator})
    return ProfileFile(profile=profile, file=file, base=base)


def _check_name(file: YamlFile, name: str) -> None:
    if name != file.path.stem:
        raise ConfigError(f"{file.where('name')}: expected the name of the file, {file.path.stem!r}, got {name!r}")


def _listed(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if path.suffix == _SUFFIX)
    except OSError as fault:
        raise ConfigError(f"{folder}: expected a folder with profiles: {fault.strerror}") from None
