"""Arguments of a comparison, each read as what it is: the folder of a run, a sweep or an experiment, or a file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadgen.adapters.imports import EXPORTS, read_export
from loadgen.adapters.store.experiment_folder import ExperimentFolder
from loadgen.adapters.store.files import is_file
from loadgen.adapters.store.kinds import FolderKind, kind_of, unknown_folder
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.series_folder import SearchFolder, SweepFolder
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.columns import Columns
from loadgen.core.comparison.cell import cell_of
from loadgen.core.comparison.gates import Gate
from loadgen.core.comparison.side import Side, Source, level_of, side_of
from loadgen.core.comparison.side_by_side import SideBySide, side_by_side
from loadgen.core.errors import StoreError
from loadgen.core.experiment.plan import Role


def compared(paths: Sequence[Path], gates: Sequence[Gate] = (), *, allow_unlike: bool = False) -> SideBySide:
    """All but the first against the first. Raises StoreError for what cannot be read, ConfigError for unlike loads.

    Where two have the same name, all go by the ends of their paths, as short as tells them apart.
    """
    read = [_read(path) for path in paths]
    names = [name for name, _ in read]
    if len(set(names)) < len(names):
        names = _ends(paths)
    sources = [Source(name=name, sides=sides) for name, (_, sides) in zip(names, read, strict=True)]
    return side_by_side(sources[0], sources[1:], gates, allow_unlike=allow_unlike)


def _ends(paths: Sequence[Path]) -> list[str]:
    """The last parts of each path, so many of them that no two are alike; of the same path twice, all as given."""
    parts = [path.resolve().parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        ends = [str(Path(*each[-depth:])) for each in parts]
        if len(set(ends)) == len(ends):
            return ends
    return [str(path) for path in paths]


def _read(path: Path) -> tuple[str, tuple[Side, ...]]:
    """Its name and its runs."""
    if is_file(path):
        return path.name, read_export(path)
    match kind_of(path):
        case FolderKind.RUN:
            folders = [RunFolder.open(path)]
        case FolderKind.SWEEP:
            folders = SweepFolder(path).runs()
        case FolderKind.EXPERIMENT:
            return _read_experiment(ExperimentFolder.open(path))
        case FolderKind.SEARCH:
            raise StoreError(
                f"{path}: is a search for a capacity, whose levels are its own; give runs of its {SearchFolder.RUNS}/"
            )
        case None:
            raise unknown_folder(path, expected=f"a run, a sweep or an experiment, or a file with {EXPORTS}")
    if not folders:
        raise StoreError(f"{path}: the sweep ended before its first level began")
    name = folders[0].load_manifest().name
    return name or path.resolve().name, tuple(_side(folder) for folder in folders)


def _read_experiment(folder: ExperimentFolder) -> tuple[str, tuple[Side, ...]]:
    """The runs of the baseline and of the arms compared with it; forced ones and the noise floor explain."""
    plan, ran = folder.load_manifest().plan, folder.ran()
    cells = [cell for cell in plan.cells if cell.name in ran and cell.arm.role in (Role.BASELINE, Role.COMPARED)]
    if not cells:
        raise StoreError(f"{folder.path}: no cell of the experiment is finished")
    return plan.name, tuple(
        replace(_side(folder.cell(cell), repeat=cell.repeat), arm=cell.arm.name, repeat=cell.repeat) for cell in cells
    )


def _side(folder: RunFolder, *, repeat: int = 0) -> Side:
    manifest = folder.load_manifest()
    summary = analyse(folder.records, manifest, folder.scrapes).summary
    columns = Columns(manifest.slo)
    for record in folder.records():
        columns.observe(record)
    level = level_of(manifest.load) or 0.0
    cell = cell_of(columns.table(), summary, arm=folder.path.name, level=level, repeat=repeat)
    return side_of(summary, manifest=manifest, cell=cell)
