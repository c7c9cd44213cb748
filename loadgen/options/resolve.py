"""One set of options from its sources: command line before environment before configuration file before default."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from loadgen.adapters.yaml_file import load_yaml, shown
from loadgen.core.errors import ConfigError
from loadgen.options.fields import flag_of

ENVIRONMENT_PREFIX = "LOADGEN_"
OptionsT = TypeVar("OptionsT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Given:
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
    the others. A model with a function `beneath` tells what holds below all sources, knowing what they gave.
    Raises ConfigError that names each wrong option where it came from, and what was expected.
    """
    fields = model.model_fields
    by_flag = {flag_of(name, field): name for name, field in fields.items()}
    sources = [
        {} if config is None else _from_file(config, by_flag),
        _from_environment(os.environ if environment is None else environment, by_flag),
        {name: Given(value, flag_of(name, fields[name])) for name, value in given.items()},
    ]
    beneath = getattr(model, "beneath", None)
    if beneath is not None:
        sources.insert(0, beneath({name: value for source in sources for name, value in source.items()}))
    chosen: dict[str, Given] = {}
    for source in sources:
        for group in getattr(model, "ALTERNATIVES", ()):
            if not group.isdisjoint(source):
                chosen = {name: value for name, value in chosen.items() if name not in group}
        chosen |= source
    try:
        return model.model_validate({name: value.value for name, value in chosen.items()})
    except ValidationError as error:
        raise ConfigError(_explain(error, model, chosen)) from None


def _from_file(path: Path, by_flag: Mapping[str, str]) -> dict[str, Given]:
    found = {}
    file = load_yaml(path)
    for key, value in file.values.items():
        flag = "--" + key.replace("_", "-")
        if flag not in by_flag:
            close = get_close_matches(flag, by_flag, n=1)
            hint = f"did you mean {close[0][2:]}?" if close else "see --help for those that there are"
            raise ConfigError(f"{file.where(key)}: no such option; {hint}")
        found[by_flag[flag]] = Given(value, file.where(key))
    return found


def _from_environment(environment: Mapping[str, str], by_flag: Mapping[str, str]) -> dict[str, Given]:
    found = {}
    for flag, name in by_flag.items():
        variable = ENVIRONMENT_PREFIX + flag[2:].replace("-", "_").upper()
        if variable in environment:
            found[name] = Given(environment[variable], variable)
    return found


def _explain(error: ValidationError, model: type[BaseModel], chosen: Mapping[str, Given]) -> str:
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
        got = "" if problem["type"] == "value_error" else f", got {shown(problem['input'], *problem['loc'])}"
        lines.append(f"{where}: {message[0].lower()}{message[1:]}{got}")
    return "; ".join(lines)
