"""`loadgen report`: a stored run or sweep, rendered again from its records."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.stored import StoredRun, StoredSweep, load
from loadgen.cli.writing import show, tell, write
from loadgen.report.html import run_html, sweep_html
from loadgen.report.json import summary_json, sweep_json
from loadgen.report.terminal import run_text, sweep_text


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run or of a sweep.")],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Render a stored run or sweep again, from its records alone: the numbers are those of the run.

    A run that was killed is rendered from what it had recorded.
    """
    stored = load(folder)
    if html is not None:
        write([_page(stored)], html)
        if str(html) == "-":
            return
        tell(f"wrote {html}")
    show(_json(stored) if as_json else _text(stored))


def _page(stored: StoredRun | StoredSweep) -> str:
    return sweep_html(stored.sweep) if isinstance(stored, StoredSweep) else run_html(stored.analysis, stored.manifest)


def _json(stored: StoredRun | StoredSweep) -> str:
    return sweep_json(stored.sweep) if isinstance(stored, StoredSweep) else summary_json(stored.analysis.summary)


def _text(stored: StoredRun | StoredSweep) -> str:
    width, color = shutil.get_terminal_size((100, 24)).columns, sys.stdout.isatty()
    if isinstance(stored, StoredSweep):
        return sweep_text(stored.sweep, stored.runs[0].manifest, width=width, color=color)
    return run_text(stored.analysis, stored.manifest, width=width, color=color)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("report", no_args_is_help=True)(report)
