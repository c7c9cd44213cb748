"""What the service and the process that measures tell each other, and the files that tell after a crash.

Beneath the folder of a run: `started` is there once a process has begun on it, `out/` holds the results,
`outcome.json` is there once it is through. The order of these files is what lets nothing run twice: without `started`
nothing was sent, with `outcome.json` nothing is left to do.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from loadgen.adapters.store.files import replace_file, sync_folder

STARTED, OUTCOME, OUT, LOG, REPORT = "started", "outcome.json", "out", "log.txt", "report.html"
SUMMARY, VIEW = "summary.json", "view.json"
OUTCOME_TOLD = "outcome"
"""The kind of the line that stands for an outcome which cannot be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a run is held against: the folder of its results, its main figures, and the gates."""

    name: str
    folder: str
    gates: list[str]
    result: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to run, with paths for files, and the hosts that may be reached."""

    run_id: str
    kind: str
    options: dict[str, Any]
    folder: str
    allowed_hosts: list[str]
    baseline: Baseline | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended: with an exit code of the command line, and the folder under `out/` that it left.

    `storage`: its files could not be written or read. `result` is what lists and charts show; `capacity` is that of a
    search, as the history keeps it.
    """

    exit_code: int
    message: str | None = None
    storage: bool = False
    artefact: str | None = None
    valid: bool | None = None
    gates: list[str] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    capacity: dict[str, Any] | None = None


def begin(folder: Path) -> bool:
    """Marks that a process begins on the order; False when one has before."""
    try:
        descriptor = os.open(folder / STARTED, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return False
    os.close(descriptor)
    sync_folder(folder)
    return True


def has_begun(folder: Path) -> bool:
    """Whether anything may have been sent."""
    return (folder / STARTED).exists()


def save_outcome(folder: Path, outcome: Outcome) -> None:
    """Leaves it whole or not at all."""
    replace_file(folder / OUTCOME, msgspec.json.encode(outcome))


def load_outcome(folder: Path) -> Outcome | None:
    """None when the process did not get that far."""
    try:
        return msgspec.json.decode((folder / OUTCOME).read_bytes(), type=Outcome)
    except (OSError, msgspec.DecodeError):
        return None


def artefact_in(folder: Path) -> str | None:
    """The folder of results that a process began, whether or not it said so."""
    try:
        found = sorted(entry.name for entry in (folder / OUT).iterdir() if entry.is_dir())
    except OSError:
        return None
    return found[0] if found else None
