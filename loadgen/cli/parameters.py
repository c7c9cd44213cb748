"""Command-line parameters made from an options model, so that each option is named and described in one place."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from loadgen.core.units import duration_text
from loadgen.options.fields import DURATION, flag_of, flags_of, panel_of
from loadgen.options.resolve import resolve

_CONFIG_HELP = "YAML file of options (names as on the command line)."
_PANELS = (
    *("Target", "Serving", "Server", "Speculation", "Traffic", "Faults"),
    *("Load", "Data", "End", "Judging", "Client", "Output", "Run"),
)
"""The order of the help."""


def options_command(model: type[BaseModel], call: Callable[[Any], None]) -> Callable[..., None]:
    """A typer command that takes every field of `model` as an option and calls `call` with the validated options.

    Each option is None until it is given: values and defaults are the model's business, so that a wrong one is
    reported alike whether it came from the command line, the environment or a file.
    """

    def command(**given: Any) -> None:
        config = given.pop("config", None)
        call(resolve(model, {key: value for key, value in given.items() if value not in (None, [])}, config=config))

    fields = sorted(model.model_fields.items(), key=lambda item: _PANELS.index(panel_of(item[1]) or _PANELS[-1]))
    parameters = [_parameter(name, field) for name, field in fields]
    config_option = typer.Option("--config", help=_CONFIG_HELP, metavar="FILE", rich_help_panel="Run")
    parameters.append(
        inspect.Parameter(
            "config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[Path | None, config_option]
        )
    )
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = call.__doc__
    return command


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    names = list(dict.fromkeys([*flags_of(field), flag_of(name, field)]))
    kind: Any = str | None
    if _is_bool(field):
        kind = bool | None
        if field.default is True:
            names = [f"{names[0]}/--no-{names[0].removeprefix('--')}"]
    elif not {list[str], dict[str, str]}.isdisjoint(_members(field)):
        kind = list[str] | None
    option = typer.Option(
        *names,
        help=_help(field),
        metavar="" if kind == (bool | None) else str(extra.get("metavar") or _metavar(field)),
        rich_help_panel=panel_of(field),
        show_default=False,
    )
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def _help(field: FieldInfo) -> str:
    """The field's description, with its default unless the description tells that itself."""
    text, default = field.description or "", field.default
    if "Default:" in text or isinstance(default, bool) or not isinstance(default, str | int | float | Path):
        return text
    nested = [known for member in get_args(field.annotation) for known in getattr(member, "__metadata__", ())]
    is_duration = DURATION in (*field.metadata, *nested)
    shown = duration_text(default) if is_duration and isinstance(default, float) else default
    return f"{text} Default: {shown}."


def _members(field: FieldInfo) -> tuple[Any, ...]:
    annotation = field.annotation
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _is_bool(field: FieldInfo) -> bool:
    return bool in _members(field)


def _metavar(field: FieldInfo) -> str:
    members = _members(field)
    return "N" if int in members else "X" if float in members else "FILE" if Path in members else "TEXT"
