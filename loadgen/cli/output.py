"""What the commands that run load print, and how they leave."""

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import typer

from loadgen.cli.writing import as_document, show, tell
from loadgen.cli.writing import width_of as width_of
from loadgen.core.metrics.summary import Sweep
from loadgen.core.request import Endpoint
from loadgen.core.run import RunManifest
from loadgen.options.metrics import MetricsOptions
from loadgen.report.terminal import run_text, sweep_text
from loadgen.wiring.execute import Finished
from loadgen.wiring.judge import Ending
from loadgen.wiring.watch import Watch, watching


def show_run(finished: Finished, *, as_json: bool, width: int) -> None:
    """Prints one run: its summary as JSON, or the report for people and where the files are."""
    if as_json:
        show(as_document(finished.analysis.summary))
        return
    text = run_text(finished.analysis, finished.manifest, width=width, color=sys.stdout.isatty())
    show(f"{text}\nsaved in {finished.folder.path}\n")


def show_sweep(sweep: Sweep, path: Path, *, manifest: RunManifest, as_json: bool, width: int) -> None:
    """Prints a ladder: as JSON, or as a table and where the files are."""
    if as_json:
        show(as_document(sweep))
        return
    text = sweep_text(sweep, manifest, width=width, color=sys.stdout.isatty())
    show(f"{text}\nsaved in {path}\n")


def watched(options: MetricsOptions, endpoint: Endpoint, *, quiet: bool) -> AbstractContextManager[Watch | None]:
    """Serves or pushes the metrics that the options ask for while the block lasts, and a page as long as it is to stay.

    `endpoint` is the route that requests go to.
    """
    return watching(options, endpoint, _unheard if quiet else tell)


def leave(ending: Ending) -> NoReturn:
    """Ends the command, and names the gates that failed."""
    for gate in ending.failed_gates:
        tell(f"loadgen: gate failed: {gate.evidence}")
    raise typer.Exit(int(ending.code))


def _unheard(line: str) -> None:
    """Nobody wants to know."""
