"""`loadgen run`: one run against a server."""

import asyncio
from functools import partial

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.reading import Reading
from loadgen.cli.usage import PlainCommand
from loadgen.options.load import RunOptions


def run(options: RunOptions) -> None:
    """Send one load to a server and measure it.

    Leaves a run folder with every request's record, a summary, and a verdict on the measurement itself.
    """
    # Help, and a mistake in an option, need none of these.
    from loadgen.cli.output import leave, show_run, watched, width_of
    from loadgen.cli.progress import RunProgress
    from loadgen.wiring.judge import ending_of
    from loadgen.wiring.run import run_once

    shown = not (options.no_progress or options.quiet)
    display = partial(RunProgress, enabled=shown)
    with watched(options, options.endpoint, quiet=options.quiet) as watch:
        with Reading("reading the data") as reading:
            finished = asyncio.run(run_once(options, display=display, progress=reading if shown else None, watch=watch))
        if not options.quiet:
            show_run(finished, as_json=options.json_output, width=width_of())
    leave(ending_of([finished], options))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("run", cls=PlainCommand, no_args_is_help=True)(options_command(RunOptions, run))
