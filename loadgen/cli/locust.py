"""`loadgen locust`: Locust's page, shape and workers around our measurement."""

import json
import os
import sys
import tempfile
from importlib.util import find_spec

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.usage import PlainCommand
from loadgen.core.errors import ConfigError
from loadgen.options.locust import LocustOptions

_MODULE = "loadgen.locustio.swarm"


def locust(options: LocustOptions) -> None:
    """Start Locust with a form for ladders of load on LLM servers, and a page of their charts.

    Its workers send the load where --master, --worker or --processes say so; --headless runs one ladder without a page.
    """
    if find_spec("locust") is None:
        raise ConfigError("Locust is not installed: pip install '.[locust]' in a clone of Loadgen adds it")
    # A process of its own from its first import on: gevent replaces what other code has imported by then. Options go
    # by a file without a name, since a command line can be read by everyone on the machine.
    with tempfile.TemporaryFile("w", encoding="utf-8") as file:
        json.dump(options.given(), file)
        file.seek(0)
        os.set_inheritable(file.fileno(), True)
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", _MODULE, str(file.fileno())])  # noqa: S606


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("locust", cls=PlainCommand, no_args_is_help=False)(options_command(LocustOptions, locust))
