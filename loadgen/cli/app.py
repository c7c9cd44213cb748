"""The command tree, and where a fault of ours or of the user becomes one line and an exit code."""

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from loadgen import __version__
from loadgen.core.errors import ExitCode, LoadgenError

COMMANDS = (
    "demo",
    "run",
    "sweep",
    "capacity",
    "experiment",
    "compare",
    "report",
    "export",
    "trace",
    "predict",
    "sim",
    "profiles",
    "doctor",
)
"""In the order of the help; each is a module of this package that registers itself."""


def build_app(command: str | None = None) -> typer.Typer:
    """The tree with all commands, or with one alone: a run need not pay for what reports and exports import."""
    app = typer.Typer(name="loadgen", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

    @app.callback(invoke_without_command=True)
    def root(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
        """Load testing for OpenAI-compatible inference servers; tells whether speculative decoding pays."""
        if version:
            typer.echo(f"loadgen {__version__}")
            raise typer.Exit

    for name in (command,) if command in COMMANDS else COMMANDS:
        import_module(f"loadgen.cli.{name}").register(app)
    return app


def run_command_line(arguments: Sequence[str]) -> int:
    """Runs a command line (without the program's name) and returns its exit code."""
    try:
        result = build_app(next(iter(arguments), None))(list(arguments), standalone_mode=True, prog_name="loadgen")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except LoadgenError as fault:
        print(f"loadgen: {fault}", file=sys.stderr)  # noqa: T201
        return int(fault.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    return int(result) if isinstance(result, int) else 0
