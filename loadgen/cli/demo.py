"""`loadgen demo`: the main job on this machine alone."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.experiment import finished_text, result_of, save_page
from loadgen.cli.experiment_progress import ExperimentProgress
from loadgen.cli.usage import PlainCommand
from loadgen.cli.writing import as_document, show, tell
from loadgen.wiring.demo import DEMO, demo_experiment
from loadgen.wiring.experiment import run_experiment


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the demo's folder.", metavar="DIR")] = Path("runs"),
    seed: Annotated[int, typer.Option(help="Seed of the load and of what is accepted.", min=0, max=2**63 - 1)] = 1,
    json_output: Annotated[bool, typer.Option("--json", metavar="", help="Print the comparison as JSON.")] = False,
) -> None:
    """Show on simulated servers how the gain of speculative decoding fades as concurrency rises. Needs nothing else.

    An experiment that is shipped: a baseline and three ways of drafting get the same requests over a ladder of
    concurrency, in less than a minute. What it leaves is an experiment's folder.
    """
    display = ExperimentProgress(enabled=True, silent=False)
    finished = asyncio.run(run_experiment(demo_experiment(seed), file=DEMO, out=out, display=display))
    result = result_of(finished)
    if not json_output:
        show(finished_text(finished, result, file=DEMO))
    elif result is not None:
        show(as_document(result))
    save_page(finished, result, told=True)
    tell(f"the experiment's file, to copy for one of your own: {DEMO}")
    raise typer.Exit(int(finished.code))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("demo", cls=PlainCommand)(demo)
