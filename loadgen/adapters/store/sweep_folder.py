"""The folder of a ladder of runs: `sweep.json` and one run folder a level under `levels/`."""

from pathlib import Path

from loadgen.adapters.store.files import Scrubber, is_file, reason, save_json
from loadgen.adapters.store.run_folder import MANIFEST, RunFolder
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Sweep

SWEEP = "sweep.json"
LEVELS = "levels"


def create_sweep(out: Path, sweep_id: str) -> Path:
    """Makes `<out>/<sweep_id>/levels/`. Raises StoreError when it is there already or cannot be made."""
    path = out / sweep_id
    try:
        path.mkdir(parents=True)
        (path / LEVELS).mkdir()
    except OSError as fault:
        raise StoreError(f"{path}: cannot be created: {reason(fault)}") from fault
    return path


def create_level(sweep: Path, index: int, level: float, *, secrets: tuple[str, ...] = ()) -> RunFolder:
    """The run folder of one level, numbered in the order in which levels are run. The number orders, nothing more."""
    return RunFolder.create(sweep / LEVELS, f"{index:03d}-{level:g}", secrets=secrets)


def level_folders(sweep: Path) -> list[RunFolder]:
    """The levels that were begun, in order; the last of a killed sweep may have records and no summary."""
    begun = sorted(manifest.parent for manifest in (sweep / LEVELS).glob(f"*/{MANIFEST}"))
    return [RunFolder.open(path) for path in begun]


def is_sweep(path: Path) -> bool:
    """Whether the folder is that of a sweep, finished or not."""
    return is_file(path / SWEEP) or (path / LEVELS).is_dir()


def save_sweep(path: Path, sweep: Sweep, *, secrets: tuple[str, ...] = ()) -> None:
    """Replaces `sweep.json`, whole or not at all."""
    save_json(path / SWEEP, sweep, Scrubber(secrets))
