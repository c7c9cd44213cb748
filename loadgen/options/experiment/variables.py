"""`${NAME}` in an experiment file: an environment variable, so that no secret stands in what is stored."""

import re
from collections.abc import Mapping, Sequence

from loadgen.adapters.yaml_file import FieldError
from loadgen.core.errors import ConfigError
from loadgen.core.redaction import holds_secret, names_secret

_VARIABLE = re.compile(r"\$\{(\w+)(:-)?\}")
"""`${NAME:-}` is nothing where the variable is not set; it comes from profiles."""


def named_in(text: str) -> list[str]:
    """The variables that a text names."""
    return [match[1] for match in _VARIABLE.finditer(text)]


def unset_in(text: str, variables: Mapping[str, str]) -> list[str]:
    """Those of them that would have to be set and are not."""
    return [match[1] for match in _VARIABLE.finditer(text) if match[1] not in variables and match[2] is None]


def without_variables(text: str) -> str:
    """What stands in the text itself."""
    return _VARIABLE.sub("", text)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables looked up. Raises ConfigError for one that is not set."""

    for name in unset_in(text, variables):
        raise ConfigError(f"the experiment names ${{{name}}}, and this environment variable is not set")
    return _VARIABLE.sub(lambda match: variables.get(match[1], ""), text)


def check_public(arguments: Sequence[str], *keys: str) -> None:
    """Raises FieldError for a secret in a command: it is stored as it is, and other users of its machine see it."""
    for argument in arguments:
        if _VARIABLE.search(argument):
            raise FieldError("${NAME} is for url and env: a command is stored as it is", *keys)
        name, equals, _ = argument.partition("=")
        if (name.startswith("-") or equals) and names_secret(name.lstrip("-")):
            raise FieldError(f"{name}: a command is stored, and seen by others; give the secret by env", *keys)
        if holds_secret(argument):
            raise FieldError("a secret stands in it: a command is stored, and seen by others; give it by env", *keys)


def check_environment(environment: Mapping[str, str], *keys: str) -> None:
    """Raises FieldError for what names no variable, and for a secret that stands in the file itself."""
    for name, text in environment.items():
        if not name or "=" in name or "\0" in name:
            raise FieldError("expected the name of a variable, without = and NUL", *keys, name)
        if (names_secret(name) and _VARIABLE.fullmatch(text) is None) or holds_secret(without_variables(text)):
            raise FieldError("a secret does not belong in a file; name a variable that holds it: ${NAME}", *keys, name)
