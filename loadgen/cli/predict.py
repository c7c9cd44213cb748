"""`loadgen predict`: what to expect of speculative decoding before anything is measured."""

import sys

import typer

from loadgen.cli.output import width_of
from loadgen.cli.parameters import options_command
from loadgen.cli.stored import write
from loadgen.options.predict import PredictOptions
from loadgen.report.prediction import prediction_html, prediction_json, prediction_text
from loadgen.wiring.predict import predicted


def predict(options: PredictOptions) -> None:
    """Say what speculative decoding is expected to bring, by concurrency, from a model of the server.

    Needs no server and sends nothing. Where step times were measured, give them: they replace the model's.
    """
    found = predicted(options)
    if options.html is not None:
        write([prediction_html(found)], options.html)
        if str(options.html) == "-":
            return
        typer.echo(f"wrote {options.html}", err=True)
    text = (
        prediction_json(found)
        if options.json_output
        else prediction_text(found, width=width_of(), color=sys.stdout.isatty())
    )
    write([text], None)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("predict")(options_command(PredictOptions, predict))
