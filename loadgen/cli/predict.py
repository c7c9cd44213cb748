"""`loadgen predict`: what to expect of speculative decoding before anything is measured."""

import shutil
import sys

import typer

from loadgen.cli.parameters import options_command
from loadgen.cli.usage import PlainCommand
from loadgen.cli.writing import show, tell, write
from loadgen.options.predict import PredictOptions


def predict(options: PredictOptions) -> None:
    """Say what speculative decoding is expected to bring, by concurrency, from a model of the server.

    Needs no server and sends nothing. Where step times were measured, give them: they replace the model's.
    """
    # Help, and a mistake in an option, need none of these.
    from loadgen.report.html.prediction import prediction_html
    from loadgen.report.prediction import prediction_json
    from loadgen.report.terminal.prediction import prediction_text
    from loadgen.wiring.predict import predicted

    found = predicted(options)
    if options.html is not None:
        write([prediction_html(found)], options.html)
        if str(options.html) == "-":
            return
        tell(f"wrote {options.html}")
    if options.json_output:
        show(prediction_json(found))
        return
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100
    show(prediction_text(found, width=width, color=sys.stdout.isatty()))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("predict", cls=PlainCommand)(options_command(PredictOptions, predict))
