"""Stored runs, and what holds several of them, analysed anew from records and from what was read of the server."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loadgen.adapters.store.experiment_folder import ExperimentFolder, ExperimentManifest
from loadgen.adapters.store.kinds import FolderKind, kind_of, unknown_folder
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.series_folder import SearchFolder, SweepFolder
from loadgen.cli.writing import tell
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.ladder import level_of, sweep_of
from loadgen.core.capacity.observed import run_of
from loadgen.core.capacity.result import CapacityResult, replayed
from loadgen.core.capacity.search import Search, search_of
from loadgen.core.errors import StoreError
from loadgen.core.experiment.plan import PlannedCell
from loadgen.core.metrics.summary import Analysis, Summary, Sweep
from loadgen.core.record import RequestRecord
from loadgen.core.run import RunManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as its records tell it; `place` tells it from the others that it is stored with."""

    folder: RunFolder
    manifest: RunManifest
    analysis: Analysis
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> Summary:
        """What `summary.json` holds."""
        return self.analysis.summary

    @property
    def runs(self) -> "tuple[StoredRun, ...]":
        """Itself."""
        return (self,)

    def records(self) -> Iterator[tuple[Mapping[str, Any], RequestRecord]]:
        """Its records with their place, streamed."""
        return ((self.place, record) for record in self.folder.records())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSweep:
    """A ladder as the records of its levels tell it, one run a level."""

    sweep: Sweep
    runs: tuple[StoredRun, ...]

    @property
    def result(self) -> Sweep:
        """What `sweep.json` holds."""
        return self.sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSearch:
    """A search for a capacity as the records of its probes tell it, one run a probe."""

    search_id: str
    search: Search
    result: CapacityResult
    runs: tuple[StoredRun, ...]

    @property
    def manifest(self) -> RunManifest:
        """That of the first probe."""
        return self.runs[0].manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExperiment:
    """The cells of an experiment that were run, one run a cell, in the order of the plan."""

    manifest: ExperimentManifest
    cells: tuple[PlannedCell, ...]
    runs: tuple[StoredRun, ...]


Stored = StoredRun | StoredSweep | StoredSearch | StoredExperiment

ANY_FOLDER = "a run, a sweep, a search for a capacity or an experiment"


def load(path: Path) -> Stored:
    """What is stored in a folder, finished or killed; a cut record file is said on stderr.

    Raises StoreError when the folder holds nothing of the kind, or nothing has begun in it.
    """
    match kind_of(path):
        case FolderKind.RUN:
            return _load_run(RunFolder.open(path))
        case FolderKind.SWEEP:
            return _load_sweep(path)
        case FolderKind.SEARCH:
            return _load_search(path)
        case FolderKind.EXPERIMENT:
            return _load_experiment(ExperimentFolder.open(path))
        case None:
            raise unknown_folder(path, expected=ANY_FOLDER)


def _load_sweep(path: Path) -> StoredSweep:
    runs = _load_runs(SweepFolder(path).runs())
    if not runs:
        raise StoreError(f"{path}: the sweep ended before its first level began")
    sweep = sweep_of(path.resolve().name, [(run.manifest, run.analysis.summary) for run in runs])
    placed = (replace(run, place={"level": level.level}) for run, level in zip(runs, sweep.levels, strict=True))
    return StoredSweep(sweep=sweep, runs=tuple(placed))


def _load_search(path: Path) -> StoredSearch:
    probes = [
        replace(run, place={"probe": number, "level": level_of(run.manifest)})
        for number, run in enumerate(_load_runs(SearchFolder(path).runs()), start=1)
    ]
    if not probes:
        raise StoreError(f"{path}: the search ended before its first probe began")
    manifest = probes[0].manifest
    search = search_of(manifest.options)
    runs = (
        (
            probe.place["level"],
            run_of(probe.folder.records(), probe.manifest, probe.result, target_ratio=search.rule.attainment_ratio),
        )
        for probe in probes
    )
    result = replayed(search, runs, objectives=manifest.slo, gpus=manifest.options["gpus"])
    return StoredSearch(search_id=path.resolve().name, search=search, result=result, runs=tuple(probes))


def _load_experiment(folder: ExperimentFolder) -> StoredExperiment:
    manifest, ran = folder.load_manifest(), folder.ran()
    planned = tuple(manifest.plan.cells)
    cells = tuple(cell for cell in planned if cell.name in ran)
    if not cells:
        raise StoreError(f"{folder.path}: no cell of the experiment is finished")
    if len(cells) < len(planned):
        tell(f"loadgen: {folder.path}: {len(cells)} of {len(planned)} cells are measured")
    runs = (
        replace(
            _load_run(folder.cell(cell)),
            place={"arm": cell.arm.name, "repeat": cell.repeat, "level": cell.level.value},
        )
        for cell in cells
    )
    return StoredExperiment(manifest=manifest, cells=cells, runs=tuple(runs))


def _load_runs(folders: Iterable[RunFolder]) -> list[StoredRun]:
    return [_load_run(folder) for folder in folders]


def _load_run(folder: RunFolder) -> StoredRun:
    manifest = folder.load_manifest()
    analysis = analyse(folder.records, manifest, folder.scrapes)
    if folder.truncated:
        tell(f"loadgen: {folder.path}: the records end early; the run was killed")
    return StoredRun(folder=folder, manifest=manifest, analysis=analysis)
