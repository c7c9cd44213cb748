"""`loadgen export`: a stored run, sweep, search or experiment in a format for other tools."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from loadgen.adapters.parquet import write_records, write_runs
from loadgen.adapters.prometheus.backfill import FinishedRun, backfill
from loadgen.adapters.prometheus.capacity import EndedSearch
from loadgen.cli.export_rows import cells_document, request_places, run_rows
from loadgen.cli.stored import Stored, StoredExperiment, StoredRun, StoredSearch, StoredSweep, load
from loadgen.cli.usage import ArgumentsCommand
from loadgen.cli.writing import as_document, tell, write
from loadgen.core.errors import ConfigError
from loadgen.core.units import NS_PER_S
from loadgen.report.csv import requests_csv, runs_csv, series_csv
from loadgen.report.json import records_json, series_json, several_series_json
from loadgen.report.vllm import vllm_json
from loadgen.wiring.watch import info_of, stored_labels


class Format(StrEnum):
    """What `--format` takes."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    VLLM = "vllm"
    OPENMETRICS = "openmetrics"


class What(StrEnum):
    """What `--what` takes."""

    SUMMARY = "summary"
    REQUESTS = "requests"
    SERIES = "series"


Kind = TypeVar("Kind", bound=StrEnum)

_CAN = {Format.PARQUET: (What.REQUESTS, What.SUMMARY), Format.VLLM: (What.SUMMARY,), Format.OPENMETRICS: (What.SERIES,)}
"""What a format holds where it does not hold everything, what it holds by default first."""


def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a run, a sweep, a search for a capacity or an experiment.")
    ],
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="NAME",
            help="csv, json, parquet, vllm (as `vllm bench serve` saves), openmetrics (to be loaded into Prometheus).",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="File to write; - or none is stdout.")
    ] = None,
    what: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="summary (default; a row a run, level, probe or cell), requests (default of parquet), or series over"
            " time (csv and json).",
        ),
    ] = None,
) -> None:
    """Write a stored run, sweep, search or experiment in a format for other tools, analysed anew from its records."""
    form = _one_of(Format, "--format", format_name)
    wanted = _wanted(form, None if what is None else _one_of(What, "--what", what))
    if form is Format.PARQUET and (output is None or str(output) == "-"):
        raise ConfigError("--format parquet: expected -o FILE; Parquet is not written to a terminal or a pipe")
    stored = load(folder)
    if form is Format.PARQUET and output is not None:
        tell(f"wrote {_parquet(output, wanted, stored)} to {output}")
        return
    match form:
        case Format.VLLM:
            write(_vllm(stored), output)
        case Format.OPENMETRICS:
            write(_openmetrics(folder, stored), output)
        case _:
            write(_text(form, wanted, stored), output)


def _one_of(kinds: type[Kind], option: str, name: str) -> Kind:
    try:
        return kinds(name)
    except ValueError:
        raise ConfigError(f"{option}: expected {' or '.join(kinds)}, got {name!r}") from None


def _wanted(form: Format, what: What | None) -> What:
    can = _CAN.get(form, tuple(What))
    if what is not None and what not in can:
        raise ConfigError(f"--what {what}: --format {form} holds {' or '.join(can)} only")
    return what or can[0]


def _text(form: Format, what: What, stored: Stored) -> Iterable[str]:
    if what is What.REQUESTS:
        records = chain.from_iterable(run.records() for run in stored.runs)
        return requests_csv(records, request_places(stored)) if form is Format.CSV else records_json(records)
    if what is What.SERIES:
        series = ((run.place, run.result) for run in stored.runs)
        if form is Format.CSV:
            return series_csv(series, request_places(stored))
        return [series_json(stored.result) if isinstance(stored, StoredRun) else several_series_json(series)]
    if form is Format.CSV:
        places, rows = run_rows(stored)
        return [runs_csv(rows, places)]
    return [as_document(cells_document(stored) if isinstance(stored, StoredExperiment) else stored.result)]


def _parquet(path: Path, what: What, stored: Stored) -> str:
    """Writes the file; what is in it, in words. A request has its level, null for that of a single run."""
    if what is What.SUMMARY:
        places, rows = run_rows(stored)
        return f"{write_runs(path, rows, places)} rows"
    records = chain.from_iterable(run.records() for run in stored.runs)
    return f"{write_records(path, records, request_places(stored) or {'level': float})} requests"


def _vllm(stored: Stored) -> Iterator[str]:
    """One object on one line; for several runs a line each, as results that were appended to one file."""
    for run in stored.runs:
        metadata = run.place if isinstance(stored, StoredExperiment) else {}
        yield from vllm_json(run.result, run.folder.records, metadata)


def _openmetrics(folder: Path, stored: Stored) -> Iterator[str]:
    """What a Prometheus would have scraped while it was measured, with the time stamps of then."""
    arms = {cell.arm.name: cell.arm for cell in stored.cells} if isinstance(stored, StoredExperiment) else {}
    runs = []
    for run in stored.runs:
        arm = arms.get(run.place.get("arm", ""))
        labels = stored_labels(run.manifest) if arm is None else stored_labels(run.manifest, arm.name, arm.method)
        runs.append(FinishedRun(labels=labels, manifest=run.manifest, summary=run.result, records=run.folder.records))
    return backfill(runs, info_of(_COMMANDS[type(stored)], folder), _search(stored))


def _search(stored: Stored) -> EndedSearch | None:
    """A search as one that ended with the last of its runs."""
    if not isinstance(stored, StoredSearch):
        return None
    last = stored.runs[-1]
    return EndedSearch(
        labels=stored_labels(last.manifest),
        search=stored.search,
        result=stored.result,
        ended_unix_s=last.manifest.origin_unix_ns / NS_PER_S + (last.result.duration_s or 0.0),
    )


_COMMANDS: dict[type, str] = {
    StoredRun: "run",
    StoredSweep: "sweep",
    StoredSearch: "capacity",
    StoredExperiment: "experiment",
}


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("export", cls=ArgumentsCommand, no_args_is_help=True)(export)
