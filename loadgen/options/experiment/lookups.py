"""Where a file names environment variables: only where they are looked up, and all that it names are set."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from loadgen.adapters.yaml_file import FieldError, KeyPath
from loadgen.core.errors import ConfigError
from loadgen.options.experiment.variables import named_in, unset_in

if TYPE_CHECKING:
    from loadgen.options.experiment.file import ExperimentFile

_OF_ARMS = frozenset({"url", "env", "command", "forced", "label"})
"""Fields of an arm that are looked up, or say themselves that they are not, or are for people."""
_ANY_TEXT = frozenset({("name",), ("workload", "extra_body")})


def check_places(values: Any, *above: str | int) -> None:
    """Raises FieldError for a variable where none is looked up: it would be sent or opened as it stands there."""
    if above in _ANY_TEXT or (len(above) == 3 and above[0] == "arms" and above[2] in _OF_ARMS):
        return
    match values:
        case dict():
            for key, value in values.items():
                check_places(value, *above, key)
        case list():
            for place, value in enumerate(values):
                check_places(value, *above, place)
        case str() if named_in(values):
            raise FieldError("${NAME} is looked up in url and env of an arm, and not here", *above)


def missing(experiment: "ExperimentFile", variables: Mapping[str, str]) -> Iterator[tuple[KeyPath, str]]:
    """In the order of the file: where it names a variable that is not set or cannot be used, and what is wrong."""
    for name, arm in experiment.arms.items():
        texts: dict[KeyPath, str] = {("env", key): text for key, text in arm.env.items()}
        if arm.forced is not None and experiment.explain == "forced":
            texts |= {("forced", "env", key): text for key, text in arm.forced.env.items()}
        if arm.url is not None:
            texts["url",] = arm.url
        unset = [(keys, variable) for keys, text in texts.items() for variable in unset_in(text, variables)]
        for keys, variable in unset:
            yield ("arms", name, *keys), f"the environment variable {variable} is not set"
        if arm.url is not None and not unset:
            try:
                arm.url_from(variables)
            except ConfigError as fault:
                yield ("arms", name, "url"), str(fault)
    if experiment.api_key_env is not None and not variables.get(experiment.api_key_env):
        yield ("api_key_env",), f"the environment variable {experiment.api_key_env} is not set"
