"""`loadgen profiles`: the servers there are profiles of, and what each stands for."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from loadgen.cli.usage import ArgumentsCommand, PlainGroup
from loadgen.cli.writing import as_document, show, tell, width_of
from loadgen.core.errors import ExitCode
from loadgen.report.profiles import check_text, profile_text, profiles_text
from loadgen.report.words import printable
from loadgen.wiring.profiles import Form, checked, described, listed, rendered

NameArgument = Annotated[str, typer.Argument(metavar="NAME|FILE", help="The profile.")]
FolderOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--profiles-dir",
        metavar="DIR",
        help="Folder to look into first; may be given several times. LOADGEN_PROFILES_DIR names more, then come those"
        " that are shipped.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", metavar="", help="Print it as JSON.")]


def list_profiles(profiles_dir: FolderOption = None, as_json: JsonOption = False) -> None:
    """Show the profiles there are: engine, model, method, GPUs.

    Exit code 2 when some cannot be read; the others are shown.
    """
    found = listed(profiles_dir or ())
    text = as_document(found) if as_json else profiles_text(found, width=width_of(), color=sys.stdout.isatty())
    show(text)
    for reason in found["unreadable"]:
        tell(f"loadgen: {printable(reason)}")
    raise typer.Exit(int(ExitCode.USAGE if found["unreadable"] else ExitCode.DONE))


def show_profile(name: NameArgument, profiles_dir: FolderOption = None, as_json: JsonOption = False) -> None:
    """Show all of a profile: what it says, what its baseline says, and what follows from it."""
    found = described(name, profiles_dir or ())
    text = as_document(found) if as_json else profile_text(found, width=width_of(), color=sys.stdout.isatty())
    show(text)


def render(
    name: NameArgument,
    form: Annotated[
        Form, typer.Option("--as", metavar="command|compose|kubernetes", help="What to write it as.")
    ] = Form.COMMAND,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=65_535, help="Port on loopback, or of the pod. Default: the profile's."),
    ] = None,
    devices: Annotated[
        str,
        typer.Option(
            metavar="ID,…", help="GPUs for the Compose service, by index or UUID. Default: as many as it takes."
        ),
    ] = "",
    forced: Annotated[
        float | None,
        typer.Option(
            metavar="L", help="Force the acceptance length to L tokens a step, 1 to k + 1. Texts mean nothing."
        ),
    ] = None,
    profiles_dir: FolderOption = None,
) -> None:
    """Write what starts the server: a command for the shell, a Compose service, or a Kubernetes pod.

    Secrets stand in it by the name of their variable, never by value.
    """
    show(rendered(name, form, profiles_dir or (), port=port, devices=devices, forced_length=forced))


def check(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME|FILE]...", help="Profiles to check. Default: all of them.")
    ] = None,
    profiles_dir: FolderOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check profiles: fields, methods that their version knows, vLLM's options, baselines equal but for speculation.

    Exit code 1 when something is wrong with one.
    """
    found = checked(names or (), profiles_dir or ())
    show(as_document(found) if as_json else check_text(found))
    raise typer.Exit(int(ExitCode.GATE_FAILED if found["faults"] else ExitCode.DONE))


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = typer.Typer(
        cls=PlainGroup, no_args_is_help=True, help="Server profiles: list them, show what they stand for, check them."
    )
    commands.command("list", cls=ArgumentsCommand)(list_profiles)
    commands.command("show", cls=ArgumentsCommand, no_args_is_help=True)(show_profile)
    commands.command("render", cls=ArgumentsCommand, no_args_is_help=True)(render)
    commands.command("check", cls=ArgumentsCommand)(check)
    app.add_typer(commands, name="profiles")
