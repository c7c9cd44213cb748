"""`loadgen demo`: the main job on this machine alone."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.output import leave, width_of
from loadgen.cli.progress import RunProgress
from loadgen.cli.writing import as_document, show, tell, write
from loadgen.core.errors import ExitCode
from loadgen.report.comparison import comparison_html, comparison_text
from loadgen.wiring.demo import demo_once
from loadgen.wiring.judge import Ending


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's folder.", metavar="DIR")] = Path("runs"),
    seed: Annotated[int, typer.Option(help="Seed of the load and of what is accepted.", min=0, max=2**63 - 1)] = 1,
    json_output: Annotated[bool, typer.Option("--json", metavar="", help="Print the comparison as JSON.")] = False,
) -> None:
    """Show on simulated servers how the gain of speculative decoding fades as concurrency rises. Needs nothing else.

    A baseline and three ways of drafting get the same requests over a ladder of concurrency, in less than a minute.
    """
    finished = asyncio.run(demo_once(out, seed=seed, display=partial(RunProgress, enabled=True), tell=tell))
    comparison = finished.comparison
    if comparison is None:
        tell(f"interrupted; what was measured until then is in {finished.path}")
        leave(Ending(code=ExitCode.INTERRUPTED))
    report = finished.path / "report.html"
    write([comparison_html(comparison)], report)
    if json_output:
        show(as_document(comparison))
    else:
        text = comparison_text(comparison, width=width_of(), color=sys.stdout.isatty())
        show(f"{text}\nsaved in {finished.path}\n")
    tell(f"report to look at: {report}")
    leave(Ending(code=ExitCode.DONE if comparison.valid else ExitCode.INVALID_MEASUREMENT))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo")(demo)
