"""`loadgen serve`: the service."""

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.usage import PlainCommand
from loadgen.cli.writing import show, tell
from loadgen.core.errors import ConfigError
from loadgen.options.serve import ServeOptions


def serve(options: ServeOptions) -> None:
    """Serve the API and the page: runs on request and by schedule, their results and history.

    Listens on this machine alone unless told otherwise, and then only with keys.
    """
    try:
        from loadgen.service.auth.keys import made_up
        from loadgen.service.serve import serve as serve_until_told
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"{fault.name} is missing, which the service needs: pip install '.[service]' in a clone of Loadgen adds it"
        ) from None

    if options.make_key:
        show(f"{made_up()}\n")
        return
    serve_until_told(options, listening=lambda url: tell(f"loadgen: the service is at {url}"))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("serve", cls=PlainCommand)(options_command(ServeOptions, serve))
