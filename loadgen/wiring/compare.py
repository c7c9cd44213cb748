"""Arguments of a comparison, each read as what it is: the folder of a run or of a sweep, or a file of results."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from loadgen.adapters.imports import EXPORTS, read_export
from loadgen.adapters.store.experiment_folder import CELLS, is_experiment
from loadgen.adapters.store.run_folder import RunFolder
from loadgen.adapters.store.sweep_folder import is_sweep, level_folders
from loadgen.core.analysis.analyse import analyse
from loadgen.core.analysis.columns import Columns
from loadgen.core.comparison.cell import cell_of
from loadgen.core.comparison.gates import Gate
from loadgen.core.comparison.side import Side, Source, level_of, side_of
from loadgen.core.comparison.side_by_side import SideBySide, side_by_side
from loadgen.core.errors import StoreError


def compared(paths: Sequence[Path], gates: Sequence[Gate] = (), *, allow_unlike: bool = False) -> SideBySide:
    """All but the first against the first. Raises StoreError for what cannot be read, ConfigError for unlike loads.

    Where two have the same name, all go by their paths.
    """
    read = [_read(path) for path in paths]
    names = Counter(name for name, _ in read)
    by_path = len(names) < len(read)
    sources = [
        Source(name=str(path) if by_path else name, sides=sides)
        for path, (name, sides) in zip(paths, read, strict=True)
    ]
    return side_by_side(sources[0], sources[1:], gates, allow_unlike=allow_unlike)


def _read(path: Path) -> tuple[str, tuple[Side, ...]]:
    """Its name and its runs. A folder is that of a sweep, of a run or of an experiment."""
    if path.is_file():
        return path.name, read_export(path)
    if is_experiment(path):
        raise StoreError(f"{path}: is an experiment: its report compares the arms; give run folders in its {CELLS}/")
    if not path.is_dir():
        raise StoreError(f"{path}: no such folder of a run or a sweep, and no file with {EXPORTS}")
    folders = level_folders(path) if is_sweep(path) else [RunFolder.open(path)]
    if not folders:
        raise StoreError(f"{path}: the sweep ended before its first level began")
    name = folders[0].load_manifest().name
    return name or path.resolve().name, tuple(_side(folder) for folder in folders)


def _side(folder: RunFolder) -> Side:
    manifest = folder.load_manifest()
    summary = analyse(folder.records, manifest, folder.scrapes).summary
    columns = Columns(manifest.slo)
    for record in folder.records():
        columns.observe(record)
    cell = cell_of(columns.table(), summary, arm=folder.path.name, level=level_of(manifest.load) or 0.0, repeat=0)
    return side_of(summary, manifest=manifest, cell=cell)
