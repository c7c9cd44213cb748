"""Stored runs, sweeps and searches, analysed anew from their records and what was read of the server."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.search_folder import is_search, probe_folders
from loadgen.adapters.store.sweep_folder import is_sweep, level_folders
from loadgen.cli.writing import tell
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.ladder import level_of, sweep_of
from loadgen.core.capacity.observed import run_of
from loadgen.core.capacity.result import CapacityResult, replayed
from loadgen.core.capacity.search import Search, search_of
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Analysis, Summary, Sweep
from loadgen.core.record import RequestRecord
from loadgen.core.run import RunManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as its records tell it; `level` is its place on a ladder, None for a run of its own."""

    folder: RunFolder
    manifest: RunManifest
    analysis: Analysis
    level: float | None = None

    @property
    def result(self) -> Summary:
        """What `summary.json` holds."""
        return self.analysis.summary

    def records(self) -> Iterator[tuple[float | None, RequestRecord]]:
        """Its records with their level, streamed."""
        return ((self.level, record) for record in self.folder.records())


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
    """A search for a capacity as the records of its probes tell it; `manifest` is that of the first."""

    search: Search
    result: CapacityResult
    manifest: RunManifest


def load_search(path: Path) -> StoredSearch | None:
    """The search stored in a folder, as far as it came; None for a folder of something else.

    Raises StoreError for a search of which no probe has begun.
    """
    if not is_search(path):
        return None
    probes = [_load_run(folder) for folder in probe_folders(path)]
    if not probes:
        raise StoreError(f"{path}: the search ended before its first probe began")
    manifest = probes[0].manifest
    search = search_of(manifest.options)
    runs = (
        (
            level_of(probe.manifest),
            run_of(probe.folder.records(), probe.manifest, probe.result, target_ratio=search.rule.attainment_ratio),
        )
        for probe in probes
    )
    result = replayed(search, runs, objectives=manifest.slo, gpus=manifest.options["gpus"])
    return StoredSearch(search=search, result=result, manifest=manifest)


def load(path: Path) -> StoredRun | StoredSweep:
    """The run or the sweep stored in a folder, finished or killed; a cut record file is said on stderr.

    Raises StoreError when the folder holds neither, or a sweep of which no level has begun.
    """
    if not is_sweep(path):
        return _load_run(RunFolder.open(path))
    folders = level_folders(path)
    if not folders:
        raise StoreError(f"{path}: the sweep ended before its first level began")
    runs = [_load_run(folder) for folder in folders]
    sweep = sweep_of(path.resolve().name, [(run.manifest, run.analysis.summary) for run in runs])
    levels = (replace(run, level=level.level) for run, level in zip(runs, sweep.levels, strict=True))
    return StoredSweep(sweep=sweep, runs=tuple(levels))


def _load_run(folder: RunFolder) -> StoredRun:
    manifest = folder.load_manifest()
    analysis = analyse(folder.records, manifest, folder.scrapes)
    if folder.truncated:
        tell(f"loadgen: {folder.path}: the records end early; the run was killed")
    return StoredRun(folder=folder, manifest=manifest, analysis=analysis)
