"""`loadgen doctor`: is this client to be believed on this machine, and what can a target do?"""

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import asdict

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from loadgen.cli.output import leave
from loadgen.cli.parameters import options_command
from loadgen.cli.writing import show, tell
from loadgen.core.errors import ExitCode
from loadgen.core.units import duration_text
from loadgen.options.doctor import DoctorOptions
from loadgen.sim.self_check import Check, Value
from loadgen.wiring.doctor import Examination, examine

DOCTOR_SCHEMA = "loadgen.doctor/1"
_RELATIONS = {"at_most": "≤ ", "at_least": "≥ ", "equal": ""}
_FOLDED = ("shape", "failure")


def doctor(options: DoctorOptions) -> None:
    """Check this client against a server of known truth, and what a target can do.

    Ends with 0 when every required check passed, 1 when one did not, 4 when the target cannot be reached.
    """
    found = asyncio.run(examine(options, tell=_tell))
    if options.json_output:
        show(msgspec.json.encode(as_json(found)).decode() + "\n")
    else:
        console = Console()
        with console.capture() as drawn:
            console.print(table(found.checks))
        show(f"{drawn.get()}{conclusion(found)}\n")
    leave(exit_code(found))


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("doctor")(options_command(DoctorOptions, doctor))


def exit_code(found: Examination) -> ExitCode:
    """4 when the target was not reached, else 1 when a required check failed, else 0."""
    if found.reached is False:
        return ExitCode.TARGET_FAILED
    return ExitCode.DONE if found.passed else ExitCode.GATE_FAILED


def as_json(found: Examination) -> dict[str, object]:
    """The contract for scripts."""
    return {"schema": DOCTOR_SCHEMA, "ok": found.passed, "checks": [asdict(check) for check in found.checks]}


def table(checks: Iterable[Check]) -> Table:
    """A row a check. Shapes and failures that passed are one row each a transport."""
    rows = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("", "check", "found", "expected"):
        rows.add_column(name, overflow="fold")
    folded: dict[str, int] = {}
    for check in checks:
        group = _group(check)
        if group is not None and check.ok:
            folded[group] = folded.get(group, 0) + 1
            continue
        rows.add_row(_mark(check), check.name, _shown(check.name, check.value), _expected(check))
        if check.advice is not None and not check.ok:
            rows.add_row("", Text(check.advice, style="dim"), "", "")
    for group, count in folded.items():
        rows.add_row(Text("ok", style="green"), f"{group}.*", f"{count} as scripted", "")
    return rows


def conclusion(found: Examination) -> str:
    """One sentence."""
    if found.reached is False:
        return "The target cannot be reached."
    failed = [check.name for check in found.checks if check.required and not check.ok]
    if failed:
        return f"{len(failed)} required checks failed: {', '.join(failed)}"
    return "Every required check passed."


def _group(check: Check) -> str | None:
    parts = check.name.split(".")
    return ".".join(parts[:2]) if len(parts) == 3 and parts[1] in _FOLDED else None


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
    return f"{value:g}" if isinstance(value, float) else str(value)


def _expected(check: Check) -> str:
    if check.limit is None:
        return ""
    return _RELATIONS[check.relation] + _shown(check.name, check.limit)


def _tell(part: str) -> None:
    if sys.stderr.isatty():
        tell(f"checking {part} …")
