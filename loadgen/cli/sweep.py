"""`loadgen sweep`: a ladder of runs against one server."""

import asyncio
from functools import partial

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.reading import Reading
from loadgen.cli.usage import PlainCommand
from loadgen.options.load import SweepOptions


def sweep(options: SweepOptions) -> None:
    """Send a ladder of loads to a server, one after the other, and show where more load stops paying.

    Each level is a run of its own in the sweep's folder; levels that are done stay when a later one fails.
    """
    # Help, and a mistake in an option, need none of these.
    from loadgen.cli.output import leave, show_sweep, watched, width_of
    from loadgen.cli.progress import RunProgress
    from loadgen.cli.writing import tell
    from loadgen.report.words import printable
    from loadgen.wiring.sweep import sweep_once

    shown = not (options.no_progress or options.quiet)
    display = partial(RunProgress, enabled=shown)
    with watched(options, options.endpoint, quiet=options.quiet) as watch:
        with Reading("reading the data") as reading:
            ladder = asyncio.run(sweep_once(options, display=display, progress=reading if shown else None, watch=watch))
        if not options.quiet:
            first = ladder.levels[0].manifest
            show_sweep(ladder.sweep, ladder.path, manifest=first, as_json=options.json_output, width=width_of())
    if ladder.fault is not None:
        tell(f"loadgen: {printable(str(ladder.fault))}")
    leave(ladder.ending(options))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("sweep", cls=PlainCommand, no_args_is_help=True)(options_command(SweepOptions, sweep))
