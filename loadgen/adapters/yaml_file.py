"""YAML files of people: a mapping, and the line of each of its keys, so that an error can point at it."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails
from yaml.constructor import ConstructorError

from loadgen.core.errors import ConfigError
from loadgen.core.redaction import without_secrets
from loadgen.report.words import printable

KeyPath = tuple[str | int, ...]
"""Keys and places in lists from the top of the file down to a value."""

ModelT = TypeVar("ModelT", bound=BaseModel)

_MOST_BYTES = 2**20
"""People write less; more would be read for minutes."""
_MOST_VALUES = 100_000
"""In a file with its aliases written out: a few lines of them can stand for more than any memory holds."""
_MOST_DIGITS = 64
_MOST_PROBLEMS = 20
_SHOWN_CHARACTERS = 200


class FieldError(ValueError):
    """What a validator of a section raises about a field within it: `keys` lead from the section to the field."""

    def __init__(self, message: str, *keys: str | int) -> None:
        super().__init__(message)
        self.keys = keys


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    """The values of a file, and the line (1-based) of each key and list item."""

    path: Path
    values: dict[str, Any]
    lines: Mapping[KeyPath, int]

    def where(self, *keys: str | int) -> str:
        """`file:line: a.b` for people."""
        return f"{self.path}:{self.line_of(*keys)}" + (f": {_named(keys)}" if keys else "")

    def line_of(self, *keys: str | int) -> int:
        """The line of a key, or of the nearest one above it that is there."""
        return next((self.lines[keys[:depth]] for depth in range(len(keys), 0, -1) if keys[:depth] in self.lines), 1)


class YamlModel(BaseModel):
    """What may stand in a file."""

    @field_validator("*", mode="before")
    @classmethod
    def _a_truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """`yes` and `on`, too, are truth values of YAML, and Python takes one for a number."""
        given = value if isinstance(value, list) else [value]
        field = cls.model_fields[str(info.field_name)]
        if any(isinstance(each, bool) for each in given) and _holds_numbers(field.annotation):
            raise ValueError(f"expected a number, got {value!r}")
        return value


class _Loader(yaml.SafeLoader):
    """The library's, with a place in every error: what does not fit its tag fails there in many ways."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        kind = node.tag.rpartition(":")[2]
        if kind == "int" and len(node.value) > _MOST_DIGITS:
            raise ConstructorError(problem=f"a number of more than {_MOST_DIGITS} digits", problem_mark=node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            raise ConstructorError(problem=f"this is no {kind}", problem_mark=node.start_mark) from None


def load_yaml(path: Path) -> YamlFile:
    """Reads a file. An empty one has no values.

    Raises ConfigError with file and line for what is no YAML, no mapping, too large, or has a key twice.
    """
    try:
        with path.open("rb") as stored:
            content = stored.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ConfigError(f"{path}: expected at most {_MOST_BYTES} bytes")
        text = content.decode()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected text in UTF-8") from None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            _expanded_size(node, path, {})
        marked = [] if node is None else list(_keys(node, ()))  # before `<<` is written out in the nodes
        values = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        problem = printable(getattr(error, "problem", None) or "this cannot be read")
        raise ConfigError(f"{where}: not YAML: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply to be read") from None
    if node is None:
        return YamlFile(path=path, values={}, lines={})
    if not isinstance(node, yaml.MappingNode) or not isinstance(values, dict):
        raise ConfigError(f"{path}:1: expected `name: value` lines")
    lines: dict[KeyPath, int] = {}
    for keys, line in marked:
        if keys in lines:
            raise ConfigError(f"{path}:{line}: {_named(keys)} stands twice, first in line {lines[keys]}")
        lines[keys] = line
    return YamlFile(path=path, values={str(key): value for key, value in values.items()}, lines=lines)


def validated(file: YamlFile, model: type[ModelT], *, context: Mapping[str, Any] | None = None) -> ModelT:
    """The file's values as a model.

    Raises ConfigError that names file, line and field, and what was expected there: a line for each problem, in the
    order of the file, and beyond twenty how many more. What only a file without misspelt fields would show is among
    them.
    """
    try:
        return model.model_validate(file.values, context=context)
    except ValidationError as error:
        problems = [(problem, file) for problem in error.errors(include_url=False)]
    misspelt = [problem for problem, _ in problems if problem["type"] == "extra_forbidden"]
    if misspelt:
        respelt = _respelt(file, model, misspelt)
        problems = [(problem, file) for problem in misspelt]
        try:
            model.model_validate(respelt.values, context=context)
        except ValidationError as error:
            problems += [(problem, respelt) for problem in error.errors(include_url=False)]
    told = sorted((_explained(problem, written, model) for problem, written in problems), key=itemgetter(0))
    texts = list(dict.fromkeys(text for _, text in told))
    if (more := len(texts) - _MOST_PROBLEMS) > 0:
        texts[_MOST_PROBLEMS:] = [f"{file.path}: and {more} more"]
    raise ConfigError("\n".join(texts))


def _respelt(file: YamlFile, model: type[BaseModel], misspelt: Sequence[ErrorDetails]) -> YamlFile:
    """The file with the fields that were meant in place of those that there are not, or without them."""
    values, lines = deepcopy(file.values), dict(file.lines)
    for problem in misspelt:
        *above, name = problem["loc"]
        section: Any = values
        for key in above:
            section = section[key]
        if name not in section:  # an alias of a section that is put right already
            continue
        value = section.pop(name)
        meant = _meant(str(name), _fields(model, tuple(above)))
        if meant is not None and meant not in section:
            section[meant] = value
            depth = len(above)
            for keys, line in file.lines.items():
                if keys[: depth + 1] == problem["loc"]:
                    lines[(*above, meant, *keys[depth + 1 :])] = line
    return YamlFile(path=file.path, values=values, lines=lines)


def _meant(name: str, known: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(name, known, n=1)), None)


def _explained(problem: ErrorDetails, file: YamlFile, model: type[BaseModel]) -> tuple[int, str]:
    """The line of a problem, and all there is to say of it."""
    loc = tuple(part for part in problem["loc"] if part != "[key]")
    cause = problem.get("ctx", {}).get("error")
    keys = (*loc, *getattr(cause, "keys", ()))
    where, line = file.where(*keys), file.line_of(*keys)
    message = problem["msg"].removeprefix("Value error, ")
    message = message if isinstance(cause, ValueError) else message[0].lower() + message[1:]
    match problem["type"]:
        case "missing":
            return line, f"{where}: this field is needed"
        case "extra_forbidden":
            known = _fields(model, loc[:-1])
            meant = _meant(str(loc[-1]), known)
            hint = f"expected one of {', '.join(known)}" if meant is None else f"did you mean {meant}?"
            return line, f"{where}: no such field; {hint}"
        case "value_error":
            return line, f"{where}: {message}"
        case _:
            return line, f"{where}: {message}, got {shown(problem['input'], *keys)}"


def _named(keys: KeyPath) -> str:
    return printable(without_secrets(".".join(map(str, keys))))


def shown(value: Any, *keys: str | int) -> str:
    """What stands there, for people: without secrets, and not all of it."""
    name = next((key for key in reversed(keys) if isinstance(key, str)), "")
    text = printable(repr(without_secrets(value, name)))
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _fields(model: type[BaseModel], keys: KeyPath) -> list[str]:
    """The fields of the section that `keys` lead to."""
    section: Any = model
    for key in keys:
        section = _section(section.model_fields[key].annotation) if _is_section(section) else get_args(section)[1]
    return list(section.model_fields)


def _section(annotation: Any) -> Any:
    """A section, or the mapping of names to sections, that a field may hold."""
    candidates = (annotation, *get_args(annotation))
    return next(each for each in candidates if _is_section(each) or get_origin(each) is dict)


def _holds_numbers(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_holds_numbers, get_args(annotation)))


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _keys(node: yaml.Node, above: KeyPath, seen: set[int] | None = None) -> Iterator[tuple[KeyPath, int]]:
    """Every key and item with its line. What an alias stands for is told once, where it was written."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return
    seen.add(id(node))
    children: list[tuple[str | int, yaml.Node, yaml.Node]]
    if isinstance(node, yaml.MappingNode):
        children = [(_name(key), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = [(place, item, item) for place, item in enumerate(node.value)]
    else:
        return
    for name, marked, child in children:
        yield (*above, name), marked.start_mark.line + 1
        yield from _keys(child, (*above, name), seen)


def _name(key: yaml.Node) -> str:
    """What a key goes by: 1 and 1.0 are the same number."""
    name = str(key.value)
    return name.removesuffix(".0") if key.tag.endswith(":float") else name


def _expanded_size(node: yaml.Node, path: Path, sizes: dict[int, int | None]) -> int:
    """How many values a node is with its aliases written out. `sizes` are those that are known, None for those around.

    Raises ConfigError for aliases that stand for too much, or for what they stand in.
    """
    line = node.start_mark.line + 1
    if id(node) in sizes:
        known = sizes[id(node)]
        if known is None:
            raise ConfigError(f"{path}:{line}: an alias stands for what it is in")
        return known
    sizes[id(node)] = None
    pairs = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else ()
    below = node.value if isinstance(node, yaml.SequenceNode) else pairs
    size = 1 + sum(_expanded_size(child, path, sizes) for child in below)
    if size > _MOST_VALUES:
        raise ConfigError(f"{path}:{line}: expected at most {_MOST_VALUES} values, aliases written out")
    sizes[id(node)] = size
    return size
