"""`loadgen experiment`: arms against a baseline, over levels and repeats, from one file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.output import width_of
from loadgen.cli.reading import Reading
from loadgen.cli.usage import ArgumentsCommand
from loadgen.cli.writing import show
from loadgen.options.experiment import load_experiment
from loadgen.report.plan import plan_json, plan_text
from loadgen.wiring.experiment_plan import planned

FileArgument = Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The experiment.")]


def plan(
    file: FileArgument,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the plan as JSON.")] = False,
) -> None:
    """Show what an experiment will do: arms, levels, the order of starts, requests, tokens and time. Starts nothing."""
    experiment = load_experiment(file)
    with Reading("reading the data") as reading:
        found = planned(experiment, progress=reading)
    if as_json:
        show(plan_json(found.plan, found.estimate, found.notes, servers=found.servers))
        return
    text = plan_text(
        found.plan,
        found.estimate,
        found.notes,
        servers=found.servers,
        width=width_of(),
        color=sys.stdout.isatty(),
    )
    show(text)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = typer.Typer(no_args_is_help=True, help="Compare arms with a baseline, over levels and repeats.")
    commands.command("plan", cls=ArgumentsCommand, no_args_is_help=True)(plan)
    app.add_typer(commands, name="experiment")
