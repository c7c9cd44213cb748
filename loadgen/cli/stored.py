"""Stored runs and sweeps, analysed anew from their records."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.sweep_folder import is_sweep, level_folders
from loadgen.cli.writing import tell
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.ladder import ATTAINMENT, knee_of
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Analysis, Sweep, SweepLevel
from loadgen.core.record import RequestRecord
from loadgen.core.run import LoadMode, RunManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as its records tell it; `level` is its place on a ladder, None for a run of its own."""

    folder: RunFolder
    manifest: RunManifest
    analysis: Analysis
    level: float | None = None

    def records(self) -> Iterator[tuple[float | None, RequestRecord]]:
        """Its records with their level, streamed."""
        return ((self.level, record) for record in self.folder.records())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSweep:
    """A ladder as the records of its levels tell it, one run a level."""

    sweep: Sweep
    runs: tuple[StoredRun, ...]


def load(path: Path) -> StoredRun | StoredSweep:
    """The run or the sweep stored in a folder, finished or killed; a cut record file is said on stderr.

    Raises StoreError when the folder holds neither, or a sweep of which no level has begun.
    """
    if not is_sweep(path):
        return _load_run(RunFolder.open(path), ladder=False)
    runs = tuple(_load_run(folder, ladder=True) for folder in level_folders(path))
    if not runs:
        raise StoreError(f"{path}: the sweep ended before its first level began")
    first = runs[0].manifest
    variable = "concurrency" if first.load.mode is LoadMode.CONCURRENCY else "request_rate_rps"
    levels = tuple(SweepLevel(level=run.level, summary=run.analysis.summary) for run in runs if run.level is not None)
    sweep = Sweep(
        sweep_id=path.resolve().name,
        name=first.name,
        variable=variable,
        levels=levels,
        knee=knee_of(levels, variable, attainment_ratio=_attainment_ratio(first)),
    )
    return StoredSweep(sweep=sweep, runs=runs)


def _attainment_ratio(manifest: RunManifest) -> float:
    """The share of requests that had to meet the objectives, as the sweep was told."""
    asked = manifest.options.get("slo_attainment")
    return float(asked) if isinstance(asked, int | float) else ATTAINMENT


def _load_run(folder: RunFolder, *, ladder: bool) -> StoredRun:
    manifest = folder.load_manifest()
    analysis = analyse(folder.records, manifest)
    if folder.truncated:
        tell(f"loadgen: {folder.path}: the records end early; the run was killed")
    return StoredRun(
        folder=folder, manifest=manifest, analysis=analysis, level=_level(folder, manifest) if ladder else None
    )


def _level(folder: RunFolder, manifest: RunManifest) -> float:
    load = manifest.load
    level = load.concurrency if load.mode is LoadMode.CONCURRENCY else load.request_rate_rps
    if level is None:
        raise StoreError(f"{folder.path / 'manifest.json'}: field 'load': expected the concurrency or rate of a level")
    return float(level)
