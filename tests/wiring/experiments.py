"""Experiments on servers that are up in no time, and what they leave."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from loadgen.adapters.store.experiment_folder import CELLS, LOG, ExperimentFolder
from loadgen.engine.live import LiveCounts
from loadgen.options.experiment import load_experiment
from loadgen.wiring.experiment import FinishedExperiment, run_experiment

LITTLE = Path(__file__).with_name("little_server.py")


def little(*words: str) -> dict[str, Any]:
    """An arm with a little server."""
    return {"command": [sys.executable, "-S", str(LITTLE), "{port}", *words]}


def experiment_file(folder: Path, arms: dict[str, Any] | None = None, **changes: Any) -> Path:
    """An experiment of two arms unless others are given, two levels of four requests, one repeat."""
    told = {
        "name": "a little one",
        "workload": {"synthetic": {"input_tokens": 32, "output_tokens": 3}},
        "load": {"concurrency": [1, 2]},
        "level": {"num_requests": 4, "warmup_requests": 1},
        "arms": arms or {"baseline": little(), "other": little()},
        "repeats": 1,
        "noise": "none",
        "cooldown": 0,
        "grace": 0,
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(told | changes, sort_keys=False))
    return path


class Watcher:
    """Keeps what a display is told; calls `on_cell` with the title of each run that begins, `on_line` with a line."""

    def __init__(
        self, on_cell: Callable[[str], None] = lambda _: None, on_line: Callable[[str], None] = lambda _: None
    ) -> None:
        self.lines: list[str] = []
        self.titles: list[str] = []
        self.left_s: list[float | None] = []
        self.starting_left_s: list[float | None] = []
        self._on_cell, self._on_line = on_cell, on_line

    def tell(self, line: str) -> None:
        self.lines.append(line)
        self._on_line(line)

    def starting(self, title: str, waited_s: float, last_line: str | None, left_s: float | None) -> None:
        self.starting_left_s.append(left_s)

    def cell(self, live: LiveCounts, title: str, after_s: float | None) -> AbstractAsyncContextManager[object]:
        self.titles.append(title)
        self.left_s.append(after_s)

        @asynccontextmanager
        async def watched() -> AsyncIterator[None]:
            self._on_cell(title)
            yield

        return watched()


def run(path: Path, *, resume: Path | None = None, watcher: Watcher | None = None, **how: Any) -> FinishedExperiment:
    """Runs or resumes the experiment of a file, in a folder beside it."""
    work = run_experiment(
        load_experiment(path), file=path, out=path.parent / "out", resume=resume, display=watcher or Watcher(), **how
    )
    return asyncio.run(work)


def begun(path: Path) -> ExperimentFolder:
    """The folder of an experiment that was begun beside its file."""
    (found,) = (path.parent / "out").iterdir()
    return ExperimentFolder.open(found)


def states(finished: FinishedExperiment) -> dict[str, str]:
    """How each cell ended, by its name."""
    return {name: end.state.value for name, end in finished.ends.items()}


def manifests(folder: ExperimentFolder) -> dict[str, dict[str, Any]]:
    """Of each cell, as it stands in its file."""
    found = (folder.path / CELLS).glob("*/c*/manifest.json")
    return {
        str(path.parent.relative_to(folder.path / CELLS)): json.loads(path.read_text())
        for path in found
        if ".unfinished-" not in str(path)
    }


def asked(folder: ExperimentFolder, sitting: str) -> list[str]:
    """What the server of a sitting was asked for, line by line."""
    return (folder.path / CELLS / sitting / LOG).read_text().splitlines()


def tree(path: Path) -> set[str]:
    """All files, without what was set aside."""
    files = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    return {file for file in files if ".unfinished-" not in file}
