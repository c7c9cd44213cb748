"""The command tree."""

import typer

app = typer.Typer(name="loadgen", no_args_is_help=True)
