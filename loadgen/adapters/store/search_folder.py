"""The folder of a search for a capacity: `capacity.json` and one run folder a probe under `probes/`."""

from pathlib import Path

from loadgen.adapters.store.files import Scrubber, is_file, reason, save_json
from loadgen.adapters.store.run_folder import MANIFEST, RunFolder
from loadgen.core.capacity.result import CapacityResult
from loadgen.core.errors import StoreError

CAPACITY = "capacity.json"
PROBES = "probes"


def create_search(out: Path, search_id: str) -> Path:
    """Makes `<out>/<search_id>/probes/`. Raises StoreError when it is there already or cannot be made."""
    path = out / search_id
    try:
        path.mkdir(parents=True)
        (path / PROBES).mkdir()
    except OSError as fault:
        raise StoreError(f"{path}: cannot be created: {reason(fault)}") from fault
    return path


def create_probe(search: Path, index: int, level: float, *, secrets: tuple[str, ...] = ()) -> RunFolder:
    """The run folder of one probe, numbered in the order in which probes are run."""
    return RunFolder.create(search / PROBES, f"{index:03d}-{level:g}", secrets=secrets)


def probe_folders(search: Path) -> list[RunFolder]:
    """The probes that were begun, in order; the last of a killed search may have records and no summary."""
    begun = sorted(manifest.parent for manifest in (search / PROBES).glob(f"*/{MANIFEST}"))
    return [RunFolder.open(path) for path in begun]


def is_search(path: Path) -> bool:
    """Whether the folder is that of a search, finished or not."""
    return is_file(path / CAPACITY) or (path / PROBES).is_dir()


def save_capacity(path: Path, result: CapacityResult, *, secrets: tuple[str, ...] = ()) -> None:
    """Replaces `capacity.json`, whole or not at all."""
    save_json(path / CAPACITY, result, Scrubber(secrets))
