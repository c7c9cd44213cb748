"""One set of options from three sources: command line before environment before configuration file before default."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from loadgen.core.errors import ConfigError
from loadgen.options.fields import flag_of

ENVIRONMENT_PREFIX = "LOADGEN_"
OptionsT = TypeVar("OptionsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Value:
    """What a source gave for a field, and where it stood."""

    value: Any
    origin: str


def resolve(
    model: type[OptionsT],
    given: Mapping[str, Any],
    *,
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> OptionsT:
    """Validated options. `given` are those of the command line that were set, by field name.

    Of options that exclude each other (`ALTERNATIVES` of the model) one from a higher source also takes the place of
    the others. Raises ConfigError that names each wrong option where it came from, and what was expected.
    """
    fields = model.model_fields
    by_flag = {flag_of(name, field): name for name, field in fields.items()}
    chosen: dict[str, _Value] = {}
    for source in (
        {} if config is None else _from_file(config, by_flag),
        _from_environment(os.environ if environment is None else environment, by_flag),
        {name: _Value(value, flag_of(name, fields[name])) for name, value in given.items()},
    ):
        for group in getattr(model, "ALTERNATIVES", ()):
            if not group.isdisjoint(source):
                chosen = {name: value for name, value in chosen.items() if name not in group}
        chosen |= source
    try:
        return model.model_validate({name: value.value for name, value in chosen.items()})
    except ValidationError as error:
        raise ConfigError(_explain(error, model, chosen)) from None


def _from_file(path: Path, by_flag: Mapping[str, str]) -> dict[str, _Value]:
    found = {}
    for key, value, line in _load_file(path):
        flag = "--" + key.replace("_", "-")
        if flag not in by_flag:
            close = get_close_matches(flag, by_flag, n=1)
            hint = f"did you mean {close[0][2:]}?" if close else "see --help for those that there are"
            raise ConfigError(f"{path}:{line}: {key}: no such option; {hint}")
        found[by_flag[flag]] = _Value(value, f"{path}:{line}: {key}")
    return found


def _from_environment(environment: Mapping[str, str], by_flag: Mapping[str, str]) -> dict[str, _Value]:
    found = {}
    for flag, name in by_flag.items():
        variable = ENVIRONMENT_PREFIX + flag[2:].replace("-", "_").upper()
        if variable in environment:
            found[name] = _Value(environment[variable], variable)
    return found


def _explain(error: ValidationError, model: type[BaseModel], chosen: Mapping[str, _Value]) -> str:
    lines = []
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0]) if problem["loc"] else None
        message = problem["msg"].removeprefix("Value error, ")
        if name is None:
            lines.append(message)
            continue
        where = chosen[name].origin if name in chosen else flag_of(name, model.model_fields[name])
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
    except OSError as error:
        raise ConfigError(f"--config {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"--config {path}: expected text in UTF-8") from None
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
