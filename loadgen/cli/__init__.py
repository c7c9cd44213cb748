"""The `loadgen` command: each module is one command, which parses, calls and renders."""

import sys


def main() -> None:
    """Entry point of the `loadgen` command: runs it and ends the process with its exit code."""
    from loadgen.cli.app import run_command_line

    sys.exit(run_command_line(sys.argv[1:]))
