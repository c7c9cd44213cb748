"""What a folder of results is: one run, or runs that belong together."""

import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from loadgen.adapters.store.experiment_folder import ExperimentFolder, is_experiment
from loadgen.adapters.store.files import is_file
from loadgen.adapters.store.run_folder import MANIFEST
from loadgen.adapters.store.series_folder import SearchFolder, SweepFolder
from loadgen.core.errors import StoreError

_TIME = re.compile(r"\d{8}-\d{6}-\d{3}")
_PARENTS = 3


class FolderKind(StrEnum):
    """The kinds, in words."""

    RUN = "run"
    SWEEP = "sweep"
    SEARCH = "search for a capacity"
    EXPERIMENT = "experiment"


_PLURALS = {FolderKind.SEARCH: "searches for a capacity"}


def kind_of(path: Path) -> FolderKind | None:
    """What is stored in the folder, finished or not; None when it is nothing of that."""
    if is_experiment(path):
        return FolderKind.EXPERIMENT
    if SearchFolder.is_at(path):
        return FolderKind.SEARCH
    if SweepFolder.is_at(path):
        return FolderKind.SWEEP
    return FolderKind.RUN if is_file(path / MANIFEST) else None


def open_experiment(path: Path) -> ExperimentFolder:
    """The experiment stored there. Raises StoreError that says what is there instead, and how that is shown."""
    match kind_of(path):
        case FolderKind.EXPERIMENT:
            return ExperimentFolder.open(path)
        case None:
            raise unknown_folder(path, expected="an experiment")
        case kind:
            raise StoreError(f"{path}: is a {kind} and no experiment; `loadgen report {path}` shows it")


def unknown_folder(path: Path, *, expected: str) -> StoreError:
    """What to say of a path of no kind: what it lies in, or what lies in it, since that is what was meant."""
    if not path.exists():
        return StoreError(f"{path}: no such folder; expected {expected}")
    if not path.is_dir():
        return StoreError(f"{path}: expected {expected}, found a file")
    for parent in list(path.resolve().parents)[:_PARENTS]:
        if (kind := kind_of(parent)) is not None:
            return StoreError(f"{path}: is a part of the {kind} {parent}; give that folder, or that of a single run")
    inside = [(folder, kind) for folder in path.iterdir() if folder.is_dir() and (kind := kind_of(folder)) is not None]
    if inside:
        newest, kind = max(inside, key=lambda each: _began(each[0]))
        return StoreError(f"{path}: holds {_counted(kind for _, kind in inside)}; the newest is the {kind} {newest}")
    return StoreError(f"{path}: expected the folder of {expected}, found no {MANIFEST} or other file of theirs in it")


def _began(folder: Path) -> tuple[str, str]:
    """What sorts by time, whatever kind of name it is in."""
    found = _TIME.search(folder.name)
    return (found[0] if found else "", folder.name)


def _counted(kinds: Iterable[FolderKind]) -> str:
    counts = Counter(kinds)
    found = [(kind, counts[kind]) for kind in FolderKind if counts[kind]]
    words = [f"{n} {kind if n == 1 else _PLURALS.get(kind, f'{kind}s')}" for kind, n in found]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
