"""`loadgen export`: a stored run or sweep in a format for other tools."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from loadgen.adapters.parquet import write_records
from loadgen.cli.stored import StoredRun, StoredSweep, load
from loadgen.cli.usage import ArgumentsCommand
from loadgen.cli.writing import as_document, tell, write
from loadgen.core.errors import ConfigError
from loadgen.report.csv import requests_csv, run_csv, series_csv, sweep_csv
from loadgen.report.json import records_json, series_json, sweep_series_json
from loadgen.report.vllm import vllm_json


class Format(StrEnum):
    """What `--format` takes."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    VLLM = "vllm"


class What(StrEnum):
    """What `--what` takes."""

    SUMMARY = "summary"
    REQUESTS = "requests"
    SERIES = "series"


Kind = TypeVar("Kind", bound=StrEnum)

_ONLY = {Format.PARQUET: What.REQUESTS, Format.VLLM: What.SUMMARY}


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run or of a sweep.")],
    format_name: Annotated[
        str,
        typer.Option("--format", metavar="NAME", help="csv, json, parquet, vllm (as `vllm bench serve` saves)."),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write; - or none is stdout.")
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(metavar="PART", help="summary (default), requests, or series over time; csv and json only."),
    ] = None,
) -> None:
    """Write a stored run or sweep in a format for other tools, analysed anew from its records."""
    form = _one_of(Format, "--format", format_name)
    wanted = _wanted(form, None if what is None else _one_of(What, "--what", what))
    if form is Format.PARQUET and (output is None or str(output) == "-"):
        raise ConfigError("--format parquet: expected -o FILE; Parquet is not written to a terminal or a pipe")
    stored = load(folder)
    runs = stored.runs if isinstance(stored, StoredSweep) else (stored,)
    if form is Format.PARQUET and output is not None:
        rows = write_records(output, chain.from_iterable(run.records() for run in runs))
        tell(f"wrote {rows} requests to {output}")
        return
    write(_vllm(runs) if form is Format.VLLM else _text(form, wanted, stored, runs), output)


def _one_of(kinds: type[Kind], option: str, name: str) -> Kind:
    try:
        return kinds(name)
    except ValueError:
        raise ConfigError(f"{option}: expected {' or '.join(kinds)}, got {name!r}") from None


def _wanted(form: Format, what: What | None) -> What:
    only = _ONLY.get(form)
    if only is not None and what not in (None, only):
        raise ConfigError(f"--what {what}: --format {form} holds {only} only")
    return only or what or What.SUMMARY


def _text(form: Format, what: What, stored: StoredRun | StoredSweep, runs: tuple[StoredRun, ...]) -> Iterable[str]:
    sweep = stored.sweep if isinstance(stored, StoredSweep) else None
    summary = runs[0].analysis.summary
    if what is What.REQUESTS:
        render = requests_csv if form is Format.CSV else records_json
        return render(chain.from_iterable(run.records() for run in runs), with_level=sweep is not None)
    if what is What.SERIES and form is Format.CSV:
        return series_csv(((run.level, run.analysis.summary) for run in runs), with_level=sweep is not None)
    if what is What.SERIES:
        return [series_json(summary) if sweep is None else sweep_series_json(sweep)]
    if form is Format.CSV:
        return [run_csv(summary) if sweep is None else sweep_csv(sweep)]
    return [as_document(stored.result)]


def _vllm(runs: Iterable[StoredRun]) -> Iterator[str]:
    """One object on one line; for a sweep a line a level, as results that were appended to one file."""
    for run in runs:
        yield from vllm_json(run.analysis.summary, run.folder.records)


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("export", cls=ArgumentsCommand, no_args_is_help=True)(export)
