"""`loadgen report`: a stored run, sweep, search or experiment, rendered again from its records."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.adapters.store.kinds import FolderKind, kind_of
from loadgen.cli import experiment
from loadgen.cli.output import width_of
from loadgen.cli.stored import StoredExperiment, StoredRun, StoredSearch, StoredSweep, load
from loadgen.cli.usage import ArgumentsCommand
from loadgen.cli.writing import as_document, show, tell, write
from loadgen.report.html import capacity_html, run_html, sweep_html
from loadgen.report.terminal import capacity_text, run_text, sweep_text


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a run, a sweep, a search for a capacity or an experiment.")
    ],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the summary as JSON.")] = False,
) -> None:
    """Render a stored run, sweep, search or experiment again, from its records: the numbers are those of the run.

    A run that was killed is rendered from what it had recorded. An experiment as by `loadgen experiment report`.
    """
    if kind_of(folder) is FolderKind.EXPERIMENT:
        experiment.report(folder, html=html, as_json=as_json)
        return
    stored = load(folder)
    assert not isinstance(stored, StoredExperiment)
    if html is not None:
        write([_page(stored)], html)
        if str(html) == "-":
            return
        tell(f"wrote {html}")
    show(as_document(stored.result) if as_json else _text(stored))


def _page(stored: StoredRun | StoredSweep | StoredSearch) -> str:
    match stored:
        case StoredRun():
            return run_html(stored.analysis, stored.manifest)
        case StoredSweep():
            return sweep_html(stored.sweep, stored.runs[0].manifest)
        case StoredSearch():
            return capacity_html(stored.search, stored.result, stored.manifest)


def _text(stored: StoredRun | StoredSweep | StoredSearch) -> str:
    width, color = width_of(), sys.stdout.isatty()
    match stored:
        case StoredRun():
            return run_text(stored.analysis, stored.manifest, width=width, color=color)
        case StoredSweep():
            return sweep_text(stored.sweep, stored.runs[0].manifest, width=width, color=color)
        case StoredSearch():
            return capacity_text(stored.search, stored.result, stored.manifest, width=width, color=color)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report", cls=ArgumentsCommand, no_args_is_help=True)(report)
