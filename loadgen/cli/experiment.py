"""`loadgen experiment`: arms against a baseline, over levels and repeats, from one file."""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from loadgen.adapters.pictures import png_of
from loadgen.adapters.store.files import reason, whole_file
from loadgen.cli.experiment_progress import ExperimentProgress
from loadgen.cli.output import watched, width_of
from loadgen.cli.reading import Reading
from loadgen.cli.usage import ArgumentsCommand, PlainGroup
from loadgen.cli.writing import as_document, show, tell, write
from loadgen.core.errors import ExitCode, StoreError
from loadgen.options.experiment import load_experiment
from loadgen.options.metrics import MetricsOptions
from loadgen.options.resolve import resolve
from loadgen.report.comparison import comparison_html, comparison_text, document_charts
from loadgen.report.comparison.gates import failed_gates
from loadgen.report.plan import plan_json, plan_text
from loadgen.report.svg import chart_svg
from loadgen.wiring.experiment import FinishedExperiment, resume_command, run_experiment
from loadgen.wiring.experiment_plan import planned
from loadgen.wiring.experiment_report import ExperimentResult, experiment_result
from loadgen.wiring.experiment_servers import missing_here

FileArgument = Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The experiment.")]


def plan(
    file: FileArgument,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the plan as JSON.")] = False,
) -> None:
    """Show what an experiment will do: arms, levels, the order of starts, requests, tokens and time. Starts nothing."""
    experiment = load_experiment(file)
    with Reading("reading the data") as reading:
        found = planned(experiment, progress=reading)
    notes = (*missing_here(experiment, found.plan), *found.notes)
    if as_json:
        show(plan_json(found.plan, found.estimate, notes, servers=found.servers, starts=found.starts))
        return
    text = plan_text(
        found.plan,
        found.estimate,
        notes,
        servers=found.servers,
        starts=found.starts,
        width=width_of(),
        color=sys.stdout.isatty(),
    )
    show(text)


def run(
    file: FileArgument,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the experiment's folder.")] = Path(
        "runs"
    ),
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume", metavar="DIR", help="Folder of this experiment, begun before: run the cells that it lacks."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", metavar="", help="Run it although it should take longer than its budget.")
    ] = False,
    prometheus_port: Annotated[
        str | None,
        typer.Option(
            "--prometheus-port",
            metavar="[ADDRESS:]PORT",
            help="Serve metrics for Prometheus on this port while the experiment runs; 0 takes a free one.",
        ),
    ] = None,
    prometheus_linger: Annotated[
        str | None,
        typer.Option("--prometheus-linger", metavar="TIME", help="Time for which metrics stay after the end."),
    ] = None,
    otlp_endpoint: Annotated[
        str | None,
        typer.Option(
            "--otlp-endpoint",
            metavar="URL",
            help="Push metrics to a collector of OpenTelemetry by OTLP over HTTP; /v1/metrics is appended.",
        ),
    ] = None,
    no_progress: Annotated[bool, typer.Option("--no-progress", metavar="", help="No progress display.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", metavar="", help="Print nothing but errors.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print what became of each cell as JSON.")
    ] = False,
) -> None:
    """Run an experiment: start each arm's server in turn, and measure every level on it.

    Each cell is a run folder of its own. What is measured stays when the experiment is interrupted or fails;
    --resume goes on from there.
    """
    experiment = load_experiment(file, variables=os.environ)
    display = ExperimentProgress(enabled=not (no_progress or quiet), silent=quiet)
    metrics = {
        "prometheus_port": prometheus_port,
        "prometheus_linger": prometheus_linger,
        "otlp_endpoint": otlp_endpoint,
    }
    given = {name: value for name, value in metrics.items() if value is not None}
    with watched(resolve(MetricsOptions, given), experiment.endpoint, quiet=quiet) as watch:
        with Reading("reading the data") as reading:
            finished = asyncio.run(
                run_experiment(
                    experiment,
                    file=file,
                    out=out,
                    resume=resume,
                    over_budget=yes,
                    display=display,
                    progress=reading if not (no_progress or quiet) else None,
                    watch=watch,
                )
            )
        result = result_of(finished)
        if not quiet:
            show(_outcome_json(finished) if as_json else finished_text(finished, result, file=file))
        save_page(finished, result, told=not (quiet or as_json))
    raise typer.Exit(int(_code(finished, result)))


def _code(finished: FinishedExperiment, result: ExperimentResult | None) -> ExitCode:
    """Where all was run, it is up to the gates. Those that failed are named, whatever else went wrong."""
    if result is None:
        return finished.code
    for comparison in result.ladders:
        for line in failed_gates(comparison):
            tell(f"loadgen: gate failed: {line}")
    return finished.code_with(result)


def result_of(finished: FinishedExperiment) -> ExperimentResult | None:
    """What an experiment that came to its end came to; None of another, and of one that holds nothing to compare."""
    if finished.interrupted or not finished.comparable:
        return None
    return experiment_result(finished.folder.path)


def save_page(finished: FinishedExperiment, result: ExperimentResult | None, *, told: bool) -> None:
    """Leaves the report as a page in the experiment's folder, once all else is said. Raises StoreError."""
    if result is not None:
        page = finished.folder.path / "report.html"
        write([comparison_html(*result.ladders)], page)
        if told:
            tell(f"report to look at: {page}")


def finished_text(finished: FinishedExperiment, result: ExperimentResult | None, *, file: Path) -> str:
    """The report, what became of the cells, and how the experiment of that file goes on where some are missing."""
    return ("" if result is None else f"{_result_text(result)}\n") + _outcome_text(finished, file)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an experiment, finished or not.")],
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")] = None,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="DIR", help="Write its charts as SVG files into this folder.")
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", metavar="DIR", help="Write its charts as PNG files into this folder (extra png)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print the comparison as JSON.")] = False,
) -> None:
    """Say what an experiment came to: does it pay, up to which load, why, and are answers left alone.

    From the records of the cells that are finished. Exit code 3 when a measurement among them is invalid or a planned
    one is missing, else 1 when a gate of the file failed.
    """
    result = experiment_result(folder)
    if svg is not None:
        _write_charts(result, svg, "svg")
    if png is not None:
        _write_charts(result, png, "png")
    if html is not None:
        write([comparison_html(*result.ladders)], html)
        if str(html) != "-":
            tell(f"wrote {html}")
    if html is None or str(html) != "-":
        show(as_document(result) if as_json else _result_text(result))
    raise typer.Exit(int(result.code))


def _write_charts(result: ExperimentResult, folder: Path, form: Literal["svg", "png"]) -> None:
    """One file a chart, named after the ladder where there are several. Raises StoreError; ConfigError without what it
    takes to make a PNG."""
    pictures: dict[str, bytes] = {}
    for comparison in result.ladders:
        ladder = "" if len(result.ladders) == 1 else f"{comparison.variable}-"
        for chart in document_charts(comparison):
            svg = chart_svg(chart)
            pictures[f"{ladder}{chart.id.removeprefix('arms-')}.{form}"] = (
                png_of(svg) if form == "png" else svg.encode("utf-8", "replace")
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise StoreError(f"{folder}: cannot be created: {reason(fault)}") from fault
    for name, picture in pictures.items():
        with whole_file(folder / name) as file:
            file.write(picture)
    tell(f"wrote charts to {folder}")


def _result_text(result: ExperimentResult) -> str:
    color = sys.stdout.isatty()
    return "\n".join(comparison_text(comparison, width=width_of(), color=color) for comparison in result.ladders)


def _outcome(finished: FinishedExperiment) -> list[dict[str, Any]]:
    """Each cell of the plan with what became of it."""
    cells = []
    for cell in finished.manifest.plan.cells:
        end = finished.ends.get(cell.name)
        cells.append(
            {
                "cell": cell.name,
                "state": "not run" if end is None else end.state.value,
                "valid": None if end is None else end.valid,
                "reason": None if end is None else end.reason,
            }
        )
    return cells


def _outcome_json(finished: FinishedExperiment) -> str:
    return as_document(
        {
            "schema": "loadgen.outcome/1",
            "experiment_id": finished.manifest.experiment_id,
            "name": finished.manifest.plan.name,
            "path": str(finished.folder.path),
            "interrupted": finished.interrupted,
            "remarks": finished.remarks,
            "cells": _outcome(finished),
        }
    )


def _outcome_text(finished: FinishedExperiment, file: Path) -> str:
    cells = _outcome(finished)
    counts = Counter(cell["state"] for cell in cells)
    invalid = sum(cell["state"] == "finished" and cell["valid"] is False for cell in cells)
    said = [f"{counts['finished']} of {len(cells)} cells are measured"]
    said += [
        f"{count} {words}"
        for count, words in (
            (invalid, "of them invalid"),
            (counts["empty"], "ran with nothing completed"),
            (counts["failed"], "failed"),
        )
        if count
    ]
    interrupted = "interrupted; " if finished.interrupted else ""
    lines = [f"{finished.manifest.plan.name}: {interrupted}{', '.join(said)}"]
    lines += [f"  ! {remark}" for remark in finished.remarks]
    if counts["finished"] < len(cells):
        lines.append(f"the rest can be run with: {resume_command(file, finished.folder.path)}")
    return "\n".join((*lines, f"saved in {finished.folder.path}", ""))


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = typer.Typer(
        cls=PlainGroup, no_args_is_help=True, help="Compare arms with a baseline, over levels and repeats."
    )
    commands.command("plan", cls=ArgumentsCommand, no_args_is_help=True)(plan)
    commands.command("run", cls=ArgumentsCommand, no_args_is_help=True)(run)
    commands.command("report", cls=ArgumentsCommand, no_args_is_help=True)(report)
    app.add_typer(commands, name="experiment")
