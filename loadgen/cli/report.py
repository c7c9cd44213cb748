"""`loadgen report`: a stored run, sweep or search, rendered again from its records."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.stored import StoredRun, StoredSearch, StoredSweep, load, load_search
from loadgen.cli.usage import ArgumentsCommand
from loadgen.cli.writing import as_document, show, tell, write
from loadgen.report.html import capacity_html, run_html, sweep_html
from loadgen.report.terminal import capacity_text, run_text, sweep_text


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a run, of a sweep or of a search for a capacity.")
    ],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the summary as JSON.")] = False,
) -> None:
    """Render a stored run, sweep or search again, from its records alone: the numbers are those of the run.

    A run that was killed is rendered from what it had recorded.
    """
    stored = load_search(folder) or load(folder)
    if html is not None:
        write([_page(stored)], html)
        if str(html) == "-":
            return
        tell(f"wrote {html}")
    show(as_document(stored.result) if as_json else _text(stored))


def _page(stored: StoredRun | StoredSweep | StoredSearch) -> str:
    if isinstance(stored, StoredSearch):
        return capacity_html(stored.search, stored.result, stored.manifest)
    if isinstance(stored, StoredSweep):
        return sweep_html(stored.sweep, stored.runs[0].manifest)
    return run_html(stored.analysis, stored.manifest)


def _text(stored: StoredRun | StoredSweep | StoredSearch) -> str:
    width, color = shutil.get_terminal_size((100, 24)).columns, sys.stdout.isatty()
    if isinstance(stored, StoredSearch):
        return capacity_text(stored.search, stored.result, stored.manifest, width=width, color=color)
    if isinstance(stored, StoredSweep):
        return sweep_text(stored.sweep, stored.runs[0].manifest, width=width, color=color)
    return run_text(stored.analysis, stored.manifest, width=width, color=color)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report", cls=ArgumentsCommand, no_args_is_help=True)(report)
