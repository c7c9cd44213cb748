"""What values of a profile may be, whatever field they stand in."""

import json
import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator

from loadgen.core.redaction import secrets_within, without_secrets

ValueT = TypeVar("ValueT")

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
"""A profile's, by which files, services and pods are called."""

REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)(:-)?\}", re.ASCII)
"""`${NAME}` is an environment variable that has to be set, `${NAME:-}` one that may be missing."""

VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""The name of an environment variable, as a shell takes it."""

_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/-]*:\w[\w.-]*(@sha256:[0-9a-f]+)?", re.ASCII)
_NO_TEXT = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")
"""Control characters but for the tab and the end of a line, which a template may have; halves of characters."""


def has_secret(value: Any) -> bool:
    """Whether one stands in it, at any depth."""
    return next(secrets_within(value), None) is not None


def image_tag(image: str) -> str | None:
    """What follows the name of an image; None where nothing does."""
    _, colon, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return tag if colon else None


def _text(value: Any) -> Any:
    """Numbers of YAML as the text they were; a truth value has several spellings, so it has to be quoted."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _readable(value: str) -> str:
    if _NO_TEXT.search(value) is not None:
        raise ValueError("expected text without control characters")
    return value


def _line(value: str) -> str:
    if not value.strip() or not value.isprintable() or value.startswith("-"):
        raise ValueError("expected a name or a path on one line, without control characters and a dash before it")
    return _open(value)


def _open(value: ValueT) -> ValueT:
    if has_secret(value):
        raise ValueError("a secret does not belong in a file, nor in a command line, which is seen by others")
    return value


def _pinned(value: str) -> str:
    if _IMAGE.fullmatch(value) is None or image_tag(value) in ("latest", "nightly"):
        got = without_secrets(value)
        raise ValueError(f"expected an image with a tag that stays what it is, NAME:TAG; got {got!r}")
    return value


def _json(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):  # a date of YAML's, a NaN, an infinity
        raise ValueError(f"expected what JSON can hold, got {value!r}") from None
    return value


def _argument(value: Any) -> Any:
    match value:
        case str():
            return _readable(value)
        case bool() | int() | float() | dict():
            return _json(value)
        case [_, *_] if all(isinstance(item, int | float | str) and not isinstance(item, bool) for item in value):
            return [_argument(item) for item in value]
    raise ValueError(
        f"expected a number, a text, true, false, a list of numbers and texts, or a mapping, got {value!r}"
    )


Line = Annotated[str, AfterValidator(_line)]
"""The name or the path of a model."""

Sentence = Annotated[str, AfterValidator(_open)]

Text = Annotated[str, BeforeValidator(_text), AfterValidator(_readable)]

Image = Annotated[str, AfterValidator(_pinned)]
"""A container's image, with a tag that stays what it is."""

Argument = Annotated[Any, AfterValidator(_argument)]
"""The value of an option: true stands for the option alone, false for its opposite, a mapping for its JSON."""

EngineWords = Annotated[dict[str, Any], AfterValidator(_json), AfterValidator(_open)]
