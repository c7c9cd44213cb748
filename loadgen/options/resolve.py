"""One set of options from three sources: command line before environment before configuration file before default."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from loadgen.core.errors import ConfigError

ENVIRONMENT_PREFIX = "LOADGEN_"
OptionsT = TypeVar("OptionsT", bound=BaseModel)


def flag_of(field: str) -> str:
    """The command-line option of a field."""
    return "--json" if field == "json_output" else "--" + field.replace("_", "-")


def resolve(
    model: type[OptionsT],
    given: Mapping[str, Any],
    *,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> OptionsT:
    """Validated options. `given` are those of the command line that were set.

    Raises ConfigError that names each wrong option where it came from, and what was expected.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if config is not None:
        for key, value, line in _load_file(config):
            field = key.replace("-", "_")
            field = "json_output" if field == "json" else field
            if field not in model.model_fields:
                known = ", ".join(sorted(name for name in model.model_fields))
                raise ConfigError(f"{config}:{line}: {key}: no such option; expected one of {known}")
            values[field], origins[field] = value, f"{config}:{line}: {key}"
    for field in model.model_fields:
        variable = ENVIRONMENT_PREFIX + field.removesuffix("_output").upper()
        if variable in environment and field not in given:
            values[field], origins[field] = environment[variable], variable
    for field, value in given.items():
        values[field], origins[field] = value, flag_of(field)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, origins)) from None


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        field = str(problem["loc"][0]) if problem["loc"] else None
        message = problem["msg"].removeprefix("Value error, ")
        if field is None:
            lines.append(message)
            continue
        where = origins.get(field, flag_of(field))
        if problem["type"] == "missing":
            lines.append(f"{where}: this option is needed")
            continue
        shown = "" if problem["type"] == "value_error" else f", got {problem['input']!r}"
        lines.append(f"{where}: {message[0].lower()}{message[1:]}{shown}")
    return "; ".join(lines)


def _load_file(path: Path) -> list[tuple[str, Any, int]]:
    """Top-level keys of a YAML file with their values and lines (1-based)."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        problem = getattr(error, "problem", None) or "this cannot be read"
        raise ConfigError(f"{where}: not YAML: {problem}") from None
    if node is None:
        return []
    if not isinstance(node, yaml.MappingNode) or not isinstance(values, dict):
        raise ConfigError(f"{path}:1: expected options as `name: value` lines")
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value}
    return [(str(key), value, lines.get(str(key), 1)) for key, value in values.items()]
