"""What the commands that run load print, and how they leave."""

import shutil
import sys
from pathlib import Path
from typing import NoReturn

import typer

from loadgen.cli.writing import show
from loadgen.core.errors import ExitCode
from loadgen.core.metrics.summary import Sweep
from loadgen.core.run import RunManifest
from loadgen.report.json import summary_json, sweep_json
from loadgen.report.terminal import run_text, sweep_text
from loadgen.wiring.execute import Finished


def width_of() -> int:
    """Columns of the terminal, 100 when there is none."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100


def show_run(finished: Finished, *, as_json: bool, width: int) -> None:
    """Prints one run: its summary as JSON, or the report for people and where the files are."""
    if as_json:
        show(summary_json(finished.analysis.summary))
        return
    text = run_text(finished.analysis, finished.manifest, width=width, color=sys.stdout.isatty())
    show(f"{text}\nsaved in {finished.folder.path}\n")


def show_sweep(sweep: Sweep, path: Path, *, manifest: RunManifest, as_json: bool, width: int) -> None:
    """Prints a ladder: as JSON, or as a table and where the files are."""
    if as_json:
        show(sweep_json(sweep))
        return
    text = sweep_text(sweep, manifest, width=width, color=sys.stdout.isatty())
    show(f"{text}\nsaved in {path}\n")


def leave(code: ExitCode) -> NoReturn:
    """Ends the command."""
    raise typer.Exit(int(code))
