"""The command tree, and where a fault of ours or of the user becomes one line and an exit code."""

import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from loadgen import __version__
from loadgen.cli.usage import PlainGroup
from loadgen.core.errors import ExitCode, InternalError, LoadgenError

COMMANDS = {
    "demo": "Show on simulated servers how the gain of speculative decoding fades as concurrency rises."
    " Needs nothing else.",
    "run": "Send one load to a server and measure it.",
    "sweep": "Send a ladder of loads to a server, one after the other, and show where more load stops paying.",
    "capacity": "Find the highest load at which a server still meets its objectives, by doubling and halving.",
    "experiment": "Compare arms with a baseline, over levels and repeats.",
    "compare": "Compare runs with a baseline, level by level: folders of runs, sweeps and experiments, or JSON"
    " results.",
    "report": "Render a stored run, sweep, search or experiment again, from its records: the numbers are those of the"
    " run.",
    "export": "Write a stored run, sweep, search or experiment in a format for other tools, analysed anew from its"
    " records.",
    "trace": "Look into a trace file, convert it, cut a part of it.",
    "predict": "Say what speculative decoding is expected to bring, by concurrency, from a model of the server.",
    "sim": "Serve a simulated model: an OpenAI-compatible server with the timing of a real one, and no GPU.",
    "profiles": "Server profiles: list them, show what they stand for, check them.",
    "locust": "Start Locust with a form for ladders of load on LLM servers, and a page of their charts.",
    "serve": "Serve the API and the page: runs on request and by schedule, their results and history.",
    "doctor": "Check this client against a server of known truth, and what a target can do.",
}
"""In the order of the help, with the first line of each one's own; each is a module that registers itself."""


def build_app(command: str | None = None) -> typer.Typer:
    """The tree with one command to be run; of the others it has what the list of commands shows.

    So neither that list nor a command pays for what other commands import.
    """
    app = typer.Typer(
        name="loadgen", cls=PlainGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )

    @app.callback(invoke_without_command=True)
    def root(version: bool = typer.Option(False, "--version", metavar="", help="Print the version and exit.")) -> None:
        """Load testing for OpenAI-compatible inference servers; tells whether speculative decoding pays."""
        if version:
            typer.echo(f"loadgen {__version__}")
            raise typer.Exit

    for name, summary in COMMANDS.items():
        if name == command:
            import_module(f"loadgen.cli.{name}").register(app)
        else:
            app.command(name, help=summary)(_listed)
    return app


def _listed() -> None:
    """A command that is in the list alone; the one that is asked for is always there in full."""
    raise InternalError("this command was not loaded")


def run_command_line(arguments: Sequence[str]) -> int:
    """Runs a command line (without the program's name) and returns its exit code."""
    try:
        command = next((word for word in arguments if not word.startswith("-")), None)
        result = build_app(command)(list(arguments), standalone_mode=True, prog_name="loadgen")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except LoadgenError as fault:
        from loadgen.report.words import printable  # what needs it has been loaded; the list of commands has not

        lines = (printable(line) for line in str(fault).split("\n"))
        print("loadgen: " + "\n".join(lines), file=sys.stderr)  # noqa: T201
        return int(fault.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    return int(result) if isinstance(result, int) else 0
