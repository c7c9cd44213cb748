"""The folder of a ladder of runs: `sweep.json` and one run folder a level under `levels/`."""

from pathlib import Path

from loadgen.adapters.store.files import Scrubber, load_json, reason, save_json
from loadgen.adapters.store.run_folder import MANIFEST, SUMMARY, RunFolder
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import SWEEP_SCHEMA, Summary, Sweep, SweepLevel
from loadgen.core.run import LoadMode

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
    return (path / SWEEP).is_file() or (path / LEVELS).is_dir()


def save_sweep(path: Path, sweep: Sweep, *, secrets: tuple[str, ...] = ()) -> None:
    """Replaces `sweep.json`, whole or not at all."""
    save_json(path / SWEEP, sweep, Scrubber(secrets))


def load_sweep(path: Path) -> Sweep:
    """Reads `sweep.json`, or puts the sweep of a killed process together from the levels that have a summary.

    A sweep put together has no knee. Raises StoreError when the folder is no sweep or holds no finished level.
    """
    if (path / SWEEP).is_file():
        return load_json(path / SWEEP, Sweep, SWEEP_SCHEMA)
    if not is_sweep(path):
        raise StoreError(f"{path}: expected the folder of a sweep, with {SWEEP} or {LEVELS}/ in it")
    summaries = [run.load_summary() for run in level_folders(path) if (run.path / SUMMARY).is_file()]
    if not summaries:
        raise StoreError(f"{path}: the sweep ended before its first level did: no level has a {SUMMARY}")
    variable = "concurrency" if summaries[0].load.mode is LoadMode.CONCURRENCY else "request_rate_rps"
    return Sweep(
        sweep_id=path.name,
        name=summaries[0].name,
        variable=variable,
        levels=tuple(SweepLevel(level=_level(summary, variable), summary=summary) for summary in summaries),
        knee=None,
    )


def _level(summary: Summary, variable: str) -> float:
    level = summary.load.concurrency if variable == "concurrency" else summary.load.request_rate_rps
    if level is None:
        raise StoreError(f"{summary.run_id}: {SUMMARY} does not say at which {variable} the level ran")
    return level
