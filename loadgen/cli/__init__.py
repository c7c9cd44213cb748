"""The `loadgen` command: each module is one command, which parses, calls and renders."""

import sys
from io import TextIOWrapper


def main() -> None:
    """Entry point of the `loadgen` command: runs it and ends the process with its exit code."""
    from loadgen.cli.app import run_command_line

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # what is no text in a name costs that character, not the output
    sys.exit(run_command_line(sys.argv[1:]))
