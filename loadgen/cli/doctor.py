"""`loadgen doctor`: is this client to be believed on this machine, and what can a target do?"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from loadgen.cli.output import width_of
from loadgen.cli.parameters import options_command
from loadgen.cli.usage import PlainCommand
from loadgen.cli.writing import show, tell
from loadgen.core.errors import ExitCode
from loadgen.core.units import duration_text
from loadgen.options.doctor import DoctorOptions
from loadgen.report import text_parts
from loadgen.report.words import printable
from loadgen.sim.check import Check, Value
from loadgen.wiring.doctor import Examination, examine

DOCTOR_SCHEMA = "loadgen.doctor/1"
_RELATIONS = {"at_most": "≤ ", "at_least": "≥ ", "equal": ""}
_FOLDED = ("shape", "failure")
_TITLES = {
    "machine": "This machine",
    "native": "Native transport",
    "httpx": "httpx transport, for --http2 and --proxy",
    "target": "Target",
}


def doctor(options: DoctorOptions) -> None:
    """Check this client against a server of known truth, and what a target can do.

    Ends with 0 when every required check passed, 1 when one did not, 4 when the target cannot be reached.
    """
    found = asyncio.run(examine(options, tell=_tell))
    if options.json_output:
        show(msgspec.json.encode(as_json(found)).decode() + "\n")
    else:
        show(doctor_text(found, width=width_of(), color=sys.stdout.isatty()))
    raise typer.Exit(int(exit_code(found)))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor", cls=PlainCommand)(options_command(DoctorOptions, doctor))


def exit_code(found: Examination) -> ExitCode:
    """4 when the target was not reached, else 1 when a required check failed, else 0."""
    if found.reached is False:
        return ExitCode.TARGET_FAILED
    return ExitCode.DONE if found.passed else ExitCode.GATE_FAILED


def as_json(found: Examination) -> dict[str, object]:
    """The contract for scripts."""
    return {"schema": DOCTOR_SCHEMA, "ok": found.passed, "checks": [asdict(check) for check in found.checks]}


def doctor_text(found: Examination, *, width: int = 100, color: bool = False) -> str:
    """A section for the machine, for each transport and for the target, then the sentence that sums them up."""
    sections = [
        text_parts.section(_TITLES[part], _body(list(checks))) for part, checks in groupby(found.checks, key=_part)
    ]
    return text_parts.rendered([*sections, Text(""), Text(conclusion(found))], width, color).lstrip("\n")


def conclusion(found: Examination) -> str:
    """One sentence."""
    if found.reached is False:
        return "The target cannot be reached."
    failed = [check.name for check in found.checks if check.required and not check.ok]
    if failed:
        return f"{len(failed)} required check{'' if len(failed) == 1 else 's'} failed: {', '.join(failed)}"
    return "Every required check passed."


def _body(checks: Sequence[Check]) -> RenderableType:
    """A row a check, without the name of the part that all share; beneath, what to do about those that failed.

    Shapes and failures that passed are one row each.
    """
    rows = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(4):
        rows.add_column(overflow="fold")
    folded: dict[str, int] = {}
    for check in checks:
        group = _group(check)
        if group is not None and check.ok:
            folded[group] = folded.get(group, 0) + 1
        else:
            rows.add_row(_mark(check), _name(check), _shown(check.name, check.value), _expected(check))
    for group, count in folded.items():
        rows.add_row(Text("ok", style="green"), f"{group}.*", f"{count} as scripted", "")
    return Group(rows, *(Text(line, style="dim") for line in _advice(checks)))


def _advice(checks: Sequence[Check]) -> Iterator[str]:
    """What to do, once for all checks that it is for."""
    names: dict[str, list[str]] = {}
    for check in checks:
        if not check.ok and check.advice is not None:
            names.setdefault(check.advice, []).append(_name(check))
    for advice, concerned in names.items():
        yield f"{', '.join(concerned)}: {printable(advice)}"


def _part(check: Check) -> str:
    return check.name.partition(".")[0]


def _name(check: Check) -> str:
    return check.name.partition(".")[2]


def _group(check: Check) -> str | None:
    group, dot, _ = _name(check).partition(".")
    return group if dot and group in _FOLDED else None


def _mark(check: Check) -> Text:
    if check.ok:
        return Text("ok", style="green")
    return Text("FAIL", style="bold red") if check.required else Text("note", style="yellow")


def _shown(name: str, value: Value) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_s") and isinstance(value, int | float) and not name.endswith("_per_cpu_s"):
        return duration_text(value)
    return f"{value:g}" if isinstance(value, float) else printable(str(value))


def _expected(check: Check) -> str:
    if check.limit is None:
        return ""
    return _RELATIONS[check.relation] + _shown(check.name, check.limit)


def _tell(part: str) -> None:
    if sys.stderr.isatty():
        tell(f"checking {part} …")
