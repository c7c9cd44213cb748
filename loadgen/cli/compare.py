"""`loadgen compare`: runs or experiments against a baseline, and the gates of a pull request."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.output import width_of
from loadgen.cli.usage import ArgumentsCommand
from loadgen.cli.writing import as_document, show, tell, write
from loadgen.core.comparison.gates import parse_gate
from loadgen.core.errors import ExitCode
from loadgen.report.compare import compare_markdown, compare_text
from loadgen.report.words import printable
from loadgen.wiring.compare import compared


def compare(
    baseline: Annotated[
        Path,
        typer.Argument(metavar="BASELINE", help="Folder of a run, sweep or experiment, or a JSON file of results."),
    ],
    candidates: Annotated[list[Path], typer.Argument(metavar="CANDIDATE", help="What to hold against it.")],
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="GATE",
            help='Exit with 1 when this holds, such as "tpot_s.p99 > 1.05x"; may be given several times.',
        ),
    ] = None,
    fail_on_interval: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on-interval",
            metavar="GATE",
            help="The same, but only when the whole 95% interval of the ratio is beyond the limit.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Write a Markdown table, for a pull request.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the comparison as JSON.")] = False,
    allow_unlike: Annotated[
        bool, typer.Option("--allow-unlike", metavar="", help="Compare although the workloads differ.")
    ] = False,
    allow_invalid: Annotated[
        bool, typer.Option("--allow-invalid", metavar="", help="Do not end with 3 when a measurement is invalid.")
    ] = False,
) -> None:
    """Compare runs with a baseline, level by level: folders of runs, sweeps and experiments, or JSON results.

    Experiments meet arm by arm. JSON may come from Loadgen (summaries), vllm bench serve, GuideLLM or AIPerf.

    Runs of other workloads are refused.
    """
    gates = [parse_gate(text) for text in fail_on or ()]
    gates += [parse_gate(text, certain=True) for text in fail_on_interval or ()]
    found = compared([baseline, *candidates], gates, allow_unlike=allow_unlike)
    for candidate in candidates:
        if candidate.resolve() == baseline.resolve():
            tell(f"loadgen: {printable(str(candidate))} is the baseline itself: every ratio is 1 and says nothing")
    if markdown is not None:
        write([compare_markdown(found)], markdown)
        if str(markdown) != "-":
            tell(f"wrote {markdown}")
    if markdown is None or str(markdown) != "-":
        show(as_document(found) if as_json else compare_text(found, width=width_of(), color=sys.stdout.isatty()))
    for gate in found.failed:
        tell(f"loadgen: gate failed: {printable(gate.candidate)} at {gate.at}: {gate.evidence}")
    if found.invalid and not allow_invalid:
        tell(f"loadgen: invalid: {printable(', '.join(map(str, found.invalid)))}")
        raise typer.Exit(int(ExitCode.INVALID_MEASUREMENT))
    if found.failed:
        raise typer.Exit(int(ExitCode.GATE_FAILED))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("compare", cls=ArgumentsCommand, no_args_is_help=True)(compare)
