"""The folder of runs that belong together: one file with what came of them, and a run folder for each."""

from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from loadgen.adapters.store.files import Scrubber, is_file, reason, save_json
from loadgen.adapters.store.run_folder import MANIFEST, RunFolder
from loadgen.core.capacity.result import CapacityResult
from loadgen.core.errors import StoreError
from loadgen.core.metrics.summary import Sweep

Result = TypeVar("Result")


class SeriesFolder(Generic[Result]):
    """One series' files. `FILE` holds its result, `RUNS` its run folders."""

    FILE: ClassVar[str]
    RUNS: ClassVar[str]

    def __init__(self, path: Path, *, secrets: tuple[str, ...] = ()) -> None:
        self.path = path
        self._secrets = secrets

    @classmethod
    def create(cls, out: Path, series_id: str, *, secrets: tuple[str, ...] = ()) -> Self:
        """Makes `<out>/<series_id>/<RUNS>/`. Raises StoreError when it is there already or cannot be made."""
        folder = cls(out / series_id, secrets=secrets)
        try:
            folder.path.mkdir(parents=True)
            (folder.path / cls.RUNS).mkdir()
        except OSError as fault:
            raise StoreError(f"{folder.path}: cannot be created: {reason(fault)}") from fault
        return folder

    @classmethod
    def is_at(cls, path: Path) -> bool:
        """Whether a series of this kind is stored there, finished or not."""
        return is_file(path / cls.FILE) or (path / cls.RUNS).is_dir()

    def create_run(self, number: int, level: float) -> RunFolder:
        """The folder of a run at that level. Runs are numbered in the order in which they begin."""
        return RunFolder.create(self.path / self.RUNS, f"{number:03d}-{level:g}", secrets=self._secrets)

    def runs(self) -> list[RunFolder]:
        """The runs that were begun, in order; the last of a killed series may have records and no summary."""
        begun = sorted(manifest.parent for manifest in (self.path / self.RUNS).glob(f"*/{MANIFEST}"))
        return [RunFolder.open(path) for path in begun]

    def save(self, result: Result) -> None:
        """Replaces the file, whole or not at all."""
        save_json(self.path / self.FILE, result, Scrubber(self._secrets))


class SweepFolder(SeriesFolder[Sweep]):
    """A ladder of loads: a run a level."""

    FILE = "sweep.json"
    RUNS = "levels"


class SearchFolder(SeriesFolder[CapacityResult]):
    """A search for a capacity: a run a probe."""

    FILE = "capacity.json"
    RUNS = "probes"
