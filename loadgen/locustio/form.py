"""The form of Locust's page: which options it asks for, and the options that a filled one stands for.

A field is named as its option is. One that is left empty takes the option's default; one that a request leaves out, as
a script may, takes what `loadgen locust` was started with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from loadgen.adapters.http.destination import Destination
from loadgen.adapters.profiles.files import is_path
from loadgen.core.errors import ConfigError
from loadgen.core.redaction import holds_secret
from loadgen.options.fields import DURATION
from loadgen.options.locust import LocustOptions, comparison_of, ladder_of, server_of
from loadgen.options.resolve import resolve

HOST = "host"
"""Locust's own field for a server, which is our `url`."""

SHOWN = (
    *("concurrency", "request_rate", "num_requests", "duration", "warmup_requests"),
    *("model", "endpoint", "api_key_env"),
    *("prompts", "trace", "trace_format", "input_tokens", "output_tokens", "ignore_eos"),
    *("slo", "slo_attainment", "name"),
    *("server_profile", "server_launch", "arm", "baseline", "repeats"),
)
"""The fields of the page, in their order."""

FIELDS = (
    *SHOWN,
    *("engine", "burstiness", "max_concurrency", "settle", "ramp_up", "grace", "timeout"),
    *("shared_prefix_tokens", "max_tokens", "temperature", "seed", "max_error_ratio"),
)
"""What a request may give: a script can say more than the page asks for."""

_YES, _NO = "yes", "no"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """A field: what it holds at first, what is said of it, and the words to choose from, where there are some."""

    name: str
    value: str
    about: str
    choices: tuple[str, ...] | None = None


def fields_of(options: LocustOptions) -> list[FormField]:
    """The fields in their order, holding what the options say."""
    known = LocustOptions.model_fields
    return [
        FormField(
            name=name,
            value=_text(getattr(options, name), known[name]),
            about=known[name].description or "",
            choices=_choices(known[name]),
        )
        for name in SHOWN
    ]


def options_from(form: Mapping[str, str], started_with: LocustOptions) -> LocustOptions:
    """The options that a filled form stands for, checked as far as they can be without the server.

    Raises ConfigError that names each wrong field and what was expected.
    """
    given = started_with.given()
    host = form.get(HOST, "").strip()
    if HOST in form and host != shown_url(started_with):
        if holds_secret(host):
            raise ConfigError("host: a secret does not belong here, where everybody sees it; give api_key_env")
        given["url"] = host
    for name in FIELDS:
        if name not in form:
            continue
        given.pop(name, None)
        if text := form[name].strip():
            given[name] = _value(name, text)
    options = resolve(LocustOptions, given, environment={})
    _check_files(options)
    if options.arm:
        comparison_of(options)
        return options
    if options.server_profile is not None:
        server_of(options)
        ladder_of(options, url="http://started")
    else:
        Destination.from_url(ladder_of(options).url, headers=options.header)
    return options


def shown_url(options: LocustOptions) -> str:
    """The target that the options name, as a page may show it: without user info and query."""
    address = options.url.partition("?")[0]
    scheme, separator, rest = address.rpartition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{separator}{authority.rpartition('@')[2]}{slash}{path}"


def _check_files(options: LocustOptions) -> None:
    """What is no file, as a device, may have no end: reading it would end the page for everybody."""
    profile = options.server_profile
    files = {
        "--prompts": options.prompts,
        "--trace": options.trace,
        "--server-profile": Path(profile) if profile is not None and is_path(profile) else None,
    }
    for flag, path in files.items():
        if path is not None and not _is_file(path):
            raise ConfigError(f"{flag}: expected a file, and {path} is none")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long, or a folder that must not be looked into
        return False


def _value(name: str, text: str) -> Any:
    if name == "arm":
        return [part.strip() for part in text.split(",") if part.strip()]
    return {_YES: True, _NO: False}.get(text, text) if _is_bool(LocustOptions.model_fields[name]) else text


def _text(value: Any, field: FieldInfo) -> str:
    match value:
        case None:
            return ""
        case bool():
            return _YES if value else _NO
        case list():
            return ",".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
        case dict():
            return ",".join(f"{key}={item}" for key, item in value.items())
        case float() if _is_duration(field):
            return f"{value:.15g}s"
        case _:
            return str(value)


def _choices(field: FieldInfo) -> tuple[str, ...] | None:
    if _is_bool(field):
        return (_NO, _YES)
    if isinstance(field.annotation, type) and issubclass(field.annotation, StrEnum):
        return tuple(field.annotation)
    words = get_args(field.annotation)
    return words if words and all(isinstance(word, str) for word in words) else None


def _is_bool(field: FieldInfo) -> bool:
    return field.annotation is bool


def _is_duration(field: FieldInfo) -> bool:
    nested = [known for member in get_args(field.annotation) for known in getattr(member, "__metadata__", ())]
    return DURATION in (*field.metadata, *nested)
