"""The `loadgen` command: each module is one command, which parses, calls and renders."""


def main() -> None:
    """Entry point of the `loadgen` command."""
    from loadgen.cli.app import app

    app()
