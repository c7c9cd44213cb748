"""`loadgen trace`: look into a trace or prompts file, convert it to the native form, cut a part of it."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from loadgen.adapters.trace_files import TraceSource, open_trace, save_native
from loadgen.cli.reading import Reading
from loadgen.cli.trace_text import facts_text
from loadgen.cli.usage import ArgumentsCommand, PlainGroup
from loadgen.cli.writing import show, tell
from loadgen.core.errors import ConfigError
from loadgen.core.traces.facts import TraceFacts
from loadgen.core.traces.part import Part
from loadgen.core.units import parse_duration_ns, seconds

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Trace or prompts file; .gz and .zst too.")]
FormatOption = Annotated[
    str,
    typer.Option(
        "--trace-format",
        metavar="NAME",
        help="auto (by content), azure, mooncake, burstgpt, bailian, sharegpt, native or prompts.",
    ),
]
BadRowOption = Annotated[
    str,
    typer.Option("--on-bad-row", metavar="stop|skip", help="Stop at a row that cannot be used, or skip it."),
]
OutputOption = Annotated[Path, typer.Option("-o", "--output", metavar="OUT.jsonl", help="File to write.")]
JsonOption = Annotated[bool, typer.Option("--json", metavar="", help="Print the facts as JSON.")]


def inspect(
    file: FileArgument,
    trace_format: FormatOption = "auto",
    on_bad_row: BadRowOption = "stop",
    as_json: JsonOption = False,
) -> None:
    """Check every row and show what the file holds: lengths, arrivals, sessions, and what was left out."""
    with _open(file, trace_format, on_bad_row) as source:
        _show(source.facts, as_json=as_json)


def convert(
    file: FileArgument,
    output: OutputOption,
    trace_format: FormatOption = "auto",
    on_bad_row: BadRowOption = "stop",
    as_json: JsonOption = False,
) -> None:
    """Write the whole file in the native form: one JSON object a request, times from the first row on."""
    with _open(file, trace_format, on_bad_row) as source:
        _save(source, file, output)
        if as_json:
            _show(source.facts, as_json=True)


def sample(
    file: FileArgument,
    output: OutputOption,
    from_time: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Begin this long after the first row, such as 60s.")
    ] = None,
    to_time: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End this long after the first row.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="The first conversations with at most N requests together.")
    ] = None,
    thin: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Keep this share of conversations, such as 0.1.")
    ] = None,
    speed: Annotated[float, typer.Option(metavar="S", help="Divide times by this factor.")] = 1.0,
    max_context: Annotated[
        int | None, typer.Option(metavar="N", help="Leave out turns with more input and output tokens than this.")
    ] = None,
    spread: Annotated[
        bool, typer.Option(metavar="", help="Spread rows with equal times over the step of the recording's clock.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of --thin and --spread.")] = 0,
    trace_format: FormatOption = "auto",
    on_bad_row: BadRowOption = "stop",
    as_json: JsonOption = False,
) -> None:
    """Cut a part of a trace and write it in the native form. Conversations stay whole; times begin at 0 again.

    A conversation belongs to the window that its first turn falls in.
    """
    part = Part(
        max_context_tokens=max_context,
        from_s=_duration_s("--from", from_time),
        to_s=_duration_s("--to", to_time),
        thin_ratio=thin,
        limit=limit,
        spread=spread,
        speed=speed,
        seed=seed,
    )
    with _open(file, trace_format, on_bad_row) as source:
        taken = source.part(part)
        _save(taken, file, output)
        _show(taken.facts, as_json=as_json)


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = typer.Typer(
        cls=PlainGroup, no_args_is_help=True, help="Look into a trace file, convert it, cut a part of it."
    )
    commands.command("inspect", cls=ArgumentsCommand, no_args_is_help=True)(inspect)
    commands.command("convert", cls=ArgumentsCommand, no_args_is_help=True)(convert)
    commands.command("sample", cls=ArgumentsCommand, no_args_is_help=True)(sample)
    app.add_typer(commands, name="trace")


def _open(file: Path, trace_format: str, on_bad_row: str) -> TraceSource:
    if on_bad_row not in ("stop", "skip"):
        raise ConfigError(f"--on-bad-row: expected stop or skip, got {on_bad_row!r}")
    with Reading(f"reading {file.name}") as progress:
        return open_trace(
            file, format=trace_format, on_bad_row="skip" if on_bad_row == "skip" else "stop", progress=progress
        )


def _save(source: TraceSource, file: Path, output: Path) -> None:
    if output.exists() and output.samefile(file):
        raise ConfigError(f"-o {output}: is the file that is read; name another")
    with Reading(f"writing {output.name}") as progress:
        written = save_native(source, output, progress=progress)
    tell(f"wrote {written} requests to {output}")


def _show(facts: TraceFacts, *, as_json: bool) -> None:
    if as_json:
        show(msgspec.json.encode(facts).decode() + "\n")
        return
    color = sys.stdout.isatty()
    width = shutil.get_terminal_size((100, 24)).columns if color else 100
    has_unicode = (sys.stdout.encoding or "ascii").lower().startswith("utf")
    show(facts_text(facts, width=width, color=color, unicode=has_unicode))


def _duration_s(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return seconds(parse_duration_ns(text))
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from None
