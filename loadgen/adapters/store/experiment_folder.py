"""The folder of an experiment: what was planned, how far it came, its servers, and one run folder a cell.

`experiment.json` is written first and stays as it is, but for what may change at a resume. `progress.jsonl` gets a
line whenever a cell has ended. Under `cells/` each sitting has a folder with `sitting.json`, the server's log, and the
run folders of its levels. One process at a time works in it: whoever holds `lock`.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

import msgspec

from loadgen.adapters.store.files import UNREADABLE, Scrubber, is_file, load_json, reason, save_json, sync_folder
from loadgen.adapters.store.run_folder import MANIFEST, SUMMARY, RunFolder
from loadgen.core.comparison.footing import Footing, Served
from loadgen.core.comparison.losslessness import Sampling
from loadgen.core.errors import StoreError
from loadgen.core.experiment.plan import Plan, PlannedCell, Role, Sitting
from loadgen.core.metrics.slo import parse_slo

EXPERIMENT_SCHEMA = "loadgen.experiment/1"
SITTING_SCHEMA = "loadgen.sitting/1"
CELL_SCHEMA = "loadgen.cell/1"

EXPERIMENT = "experiment.json"
PROGRESS = "progress.jsonl"
CELLS = "cells"
SITTING = "sitting.json"
LOG = "server.log"
LOCK = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting of the file that was another until a resume."""

    setting: str
    was: Any
    now: Any
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentManifest:
    """What an experiment is, as it was before anything was started. `file` is its file as resolved, without secrets.

    `data` says what is sent, as in the manifest of a run. `changes` are those of the file at its resumes, which are in
    `file` and `plan` already.
    """

    schema: str = EXPERIMENT_SCHEMA
    experiment_id: str
    started_at: str
    plan: Plan
    file: dict[str, Any]
    data: dict[str, Any]
    client_version: str
    host: dict[str, Any]
    changes: tuple[Change, ...] = ()


class CellState(StrEnum):
    """How a cell ended: with a run that can be used or judged, with one in which no request completed, or without,
    because its server was not there."""

    FINISHED = "finished"
    EMPTY = "empty"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellEnd:
    """A line of progress. `valid` is the verdict on a run, `reason` says why a cell failed or what it is empty of.

    `start` numbers the start of the sitting's server that it was measured on, from 1; None of what failed, and where an
    older version wrote it.
    """

    schema: str = CELL_SCHEMA
    cell: str
    state: CellState
    valid: bool | None = None
    reason: str | None = None
    start: int | None = None
    ended_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One start of a sitting's server.

    `how`, `url` and `start_s` are None when it did not come up, `served` when it could not be asked; `fault` says why.
    `footing` is how it stands to the baseline's first start, `late_p99_s` how far a simulated server was from its own
    instants. `stopped` says how it ended, None while it runs or when this process was killed.
    """

    started_at: str
    how: str | None = None
    url: str | None = None
    start_s: float | None = None
    served: Served | None = None
    footing: Footing | None = None
    fault: str | None = None
    late_p99_s: float | None = None
    stopped: str | None = None
    exit_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SittingRecord:
    """`sitting.json`: the starts of its server, more than one where the experiment was resumed within it."""

    schema: str = SITTING_SCHEMA
    sitting: str
    starts: tuple[Start, ...] = field(default=())


class ExperimentFolder:
    """One experiment's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, manifest: ExperimentManifest) -> "ExperimentFolder":
        """Makes the folder with the manifest in it. Raises StoreError when it is there already or cannot be made.

        Where the manifest cannot be written, on a full disk, nothing of the folder stays.
        """
        try:
            path.mkdir(parents=True)
            (path / CELLS).mkdir()
        except OSError as fault:
            raise StoreError(f"{path}: cannot be created: {reason(fault)}") from fault
        folder = cls(path)
        try:
            folder.save_manifest(manifest)
        except StoreError:
            shutil.rmtree(path, ignore_errors=True)
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> "ExperimentFolder":
        """The experiment stored there. Raises StoreError for a folder that holds none."""
        if not is_experiment(path):
            raise StoreError(f"{path}: expected the folder of an experiment, found no {EXPERIMENT} in it")
        return cls(path)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from working in the folder. Raises StoreError when one does.

        The system takes the lock back when this process ends in whatever way.
        """
        path = self.path / LOCK
        try:
            file: IO[str] = path.open("a+")
        except OSError as fault:
            raise StoreError(f"{path}: cannot be written: {reason(fault)}") from fault
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise StoreError(f"{self.path}: process {file.read().strip()} is at work on this experiment") from None
            try:
                os.ftruncate(file.fileno(), 0)
                os.write(file.fileno(), f"{os.getpid()}\n".encode())
            except OSError as fault:
                raise StoreError(f"{path}: cannot be written: {reason(fault)}") from fault
            yield

    def save_manifest(self, manifest: ExperimentManifest) -> None:
        """Replaces `experiment.json`, whole or not at all."""
        save_json(self.path / EXPERIMENT, manifest, Scrubber())

    def load_manifest(self) -> ExperimentManifest:
        """Reads `experiment.json`. Raises StoreError for another schema, and for parts that do not agree."""
        path = self.path / EXPERIMENT
        manifest = load_json(path, ExperimentManifest, EXPERIMENT_SCHEMA)
        if (fault := _disagreement(manifest)) is not None:
            raise StoreError(f"{path}: {fault}")
        return manifest

    def ends(self) -> dict[str, CellEnd]:
        """How each cell ended, by its name; of a cell that was run again, the last. One cut off in writing is none.

        Raises StoreError for a line that is something else.
        """
        found: dict[str, CellEnd] = {}
        *lines, _ = self._progress().split(b"\n")
        for number, line in enumerate(lines, start=1):
            try:
                end = msgspec.json.decode(line, type=CellEnd)
            except UNREADABLE as fault:
                raise StoreError(f"{self.path / PROGRESS}: line {number}: expected {CELL_SCHEMA}: {fault}") from fault
            found[end.cell] = end
        return found

    def finished(self) -> Mapping[str, CellEnd]:
        """The cells that are done for good: said so, and with a summary in their folders."""
        return {name: end for name, end in self.ran().items() if end.state is CellState.FINISHED}

    def ran(self) -> Mapping[str, CellEnd]:
        """The cells that have a whole run, those in which nothing completed included, which a resume runs again."""
        return {
            name: end
            for name, end in self.ends().items()
            if end.state is not CellState.FAILED and is_file(self.path / CELLS / name / SUMMARY)
        }

    def note(self, end: CellEnd, *, secrets: tuple[str, ...] = ()) -> None:
        """Adds a line of progress, which is on the disk when this returns. Raises StoreError."""
        path = self.path / PROGRESS
        try:
            with path.open("ab") as file:
                file.truncate(self._progress().rfind(b"\n") + 1)  # what a kill cut off
                file.write(Scrubber(secrets).encode(end) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.path)
        except OSError as fault:
            raise StoreError(f"{path}: cannot be written: {reason(fault)}") from fault

    def begin_sitting(self, sitting: Sitting) -> Path:
        """The sitting's folder, made if it is not there."""
        path = self.path / CELLS / sitting.name
        try:
            path.mkdir(exist_ok=True)
        except OSError as fault:
            raise StoreError(f"{path}: cannot be created: {reason(fault)}") from fault
        return path

    def sitting(self, sitting: Sitting) -> SittingRecord:
        """What is known of a sitting's server; no starts of one that has not begun."""
        path = self.path / CELLS / sitting.name / SITTING
        record = (
            load_json(path, SittingRecord, SITTING_SCHEMA) if is_file(path) else SittingRecord(sitting=sitting.name)
        )
        for place, start in enumerate(record.starts):
            if not _is_instant(start.started_at):
                raise StoreError(f"{path}: starts.{place}.started_at: expected a time, found {start.started_at!r}")
        return record

    def save_sitting(self, record: SittingRecord, *, secrets: tuple[str, ...] = ()) -> None:
        """Replaces a sitting's file, whole or not at all."""
        save_json(self.path / CELLS / record.sitting / SITTING, record, Scrubber(secrets))

    def begin_cell(self, cell: PlannedCell, *, secrets: tuple[str, ...] = ()) -> RunFolder:
        """A new run folder for a cell. What an earlier attempt left is set aside as `<level>.unfinished-1`, -2, …"""
        place = self.path / CELLS / cell.name
        if place.exists():
            number = 1
            while (aside := place.with_name(f"{place.name}.unfinished-{number}")).exists():
                number += 1
            try:
                place.rename(aside)
            except OSError as fault:
                raise StoreError(f"{place}: cannot be set aside: {reason(fault)}") from fault
        return RunFolder.create(place.parent, place.name, secrets=secrets)

    def cell(self, cell: PlannedCell) -> RunFolder:
        """The run of a cell. Raises StoreError when there is none, or one that was measured for another cell."""
        run = RunFolder.open(self.path / CELLS / cell.name)
        manifest = run.load_manifest()
        expected, labels = {"arm": cell.arm.name, "repeat": str(cell.repeat)}, manifest.labels
        if not _is_instant(manifest.started_at):
            raise StoreError(f"{run.path / MANIFEST}: started_at: expected a time, found {manifest.started_at!r}")
        for name, value in expected.items():
            if labels.get(name, value) != value:
                raise StoreError(
                    f"{run.path / MANIFEST}: labels.{name}: expected {value!r}, whose folder it is in, found"
                    f" {labels[name]!r}"
                )
        return run

    def _progress(self) -> bytes:
        try:
            return (self.path / PROGRESS).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as fault:
            raise StoreError(f"{self.path / PROGRESS}: cannot be read: {reason(fault)}") from fault


def _disagreement(manifest: ExperimentManifest) -> str | None:
    """Where the parts of a manifest do not fit one another, or the report, as only those of an edited one do not."""
    plan, known = manifest.plan, manifest.file.get("arms")
    if not plan.arms or plan.arms[0].role is not Role.BASELINE:
        return "plan.arms: expected the baseline first"
    for arm in plan.arms:
        if not isinstance(known, dict) or not isinstance(known.get(arm.of), dict):
            return f"plan.arms: {arm.name!r} is of {arm.of!r}, which file.arms lacks"
        if not _is_texts(known[arm.of].get("command", [])):
            return f"file.arms.{arm.of}.command: expected a list of texts"
    for sitting in plan.sittings:
        if sitting.arm not in plan.arms:
            return f"plan.sittings: {sitting.arm.name!r} is not among plan.arms as it stands there"
    return _misjudging(manifest.file)


def _misjudging(file: dict[str, Any]) -> str | None:
    """Where what results are judged by is not of its kind. What an older version did not store is added as nothing."""
    gates, price, slo = (
        file.setdefault("gates", []),
        file.setdefault("price_per_hour", None),
        file.setdefault("slo", None),
    )
    if not _is_texts(gates):
        return "file.gates: expected a list of texts"
    if price is not None and (isinstance(price, bool) or not isinstance(price, int | float) or price <= 0):
        return "file.price_per_hour: expected a number above 0"
    try:
        parse_slo("ttft=1s" if slo is None else str(slo))
    except ValueError as fault:
        return f"file.slo: {fault}"
    if file.setdefault("losslessness", "none") not in ("none", *Sampling):
        return f"file.losslessness: expected none, {' or '.join(Sampling)}"
    return None


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_instant(text: str) -> bool:
    """Whether it is a time with its zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def is_experiment(path: Path) -> bool:
    """Whether the folder is that of an experiment, finished or not."""
    return is_file(path / EXPERIMENT)
