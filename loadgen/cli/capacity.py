"""`loadgen capacity`: the highest load at which a server still meets its objectives."""

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.reading import Reading
from loadgen.cli.usage import PlainCommand
from loadgen.cli.writing import as_document, show, tell
from loadgen.options.capacity import CapacityOptions

if TYPE_CHECKING:
    from loadgen.core.capacity.probe import Probe


def capacity(options: CapacityOptions) -> None:
    """Find the highest load at which a server still meets its objectives, by doubling and halving.

    Each probe is a run of its own in the search's folder, and stays when a later one fails. The exit code is 0 with a
    capacity, 1 when not even the first level meets the objectives.
    """
    # Help, and a mistake in an option, need none of these.
    from loadgen.cli.output import watched, width_of
    from loadgen.cli.progress import RunProgress
    from loadgen.report.terminal import capacity_text
    from loadgen.report.words import asked, printable
    from loadgen.wiring.capacity import exit_code_of, find_capacity

    shown = not (options.no_progress or options.quiet)
    display = partial(RunProgress, enabled=shown)

    def told(probe: "Probe") -> None:
        if shown:
            tell(f"{options.variable.replace('-', ' ')} {asked(probe.level)}: {probe.verdict}: {probe.why}")

    with watched(options, options.endpoint, quiet=options.quiet) as watch:
        with Reading("reading the data") as reading:
            progress = reading if shown else None
            found = asyncio.run(find_capacity(options, display=display, told=told, progress=progress, watch=watch))
        if not options.quiet:
            if options.json_output:
                show(as_document(found.result))
            else:
                text = capacity_text(
                    found.search,
                    found.result,
                    found.runs[0].manifest,
                    width=width_of(),
                    color=sys.stdout.isatty(),
                )
                show(f"{text}\nsaved in {found.path}\n")
    if found.fault is not None:
        tell(f"loadgen: {printable(str(found.fault))}")
    raise typer.Exit(int(exit_code_of(found)))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("capacity", cls=PlainCommand, no_args_is_help=True)(options_command(CapacityOptions, capacity))
