"""Types of option values: what a string from a command line, a variable or a file is read as."""

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from loadgen.core.redaction import holds_secret, secrets_within
from loadgen.core.units import parse_duration_ns, seconds

_HIGHEST_PORT = 65_535
_DEEPEST = 100
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _duration(value: Any) -> Any:
    return seconds(parse_duration_ns(value)) if isinstance(value, str | int | float) else value


def _json_object(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise ValueError(f"expected a JSON object, got text that is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f'expected a JSON object such as {{"top_p": 0.9}}, got {type(value).__name__}')
    return strict_json(value)


def strict_json(value: dict[str, Any]) -> dict[str, Any]:
    """The object, which every reader of JSON can read. Raises ValueError for one that is not so."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [item for each in level for item in _items(each)]
    if level:
        raise ValueError(f"expected at most {_DEEPEST} objects and lists within one another")
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:  # a NaN, an infinity, half a character, or a date of YAML's
        raise ValueError(f"expected what JSON can hold ({error})") from None
    return value


def _items(value: Any) -> Iterable[Any]:
    """What stands in an object or a list."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _public(value: dict[str, Any]) -> dict[str, Any]:
    """What is stored as it is."""
    for keys in secrets_within(value):
        named = ".".join(map(str, keys))
        raise ValueError(f"{named}: a secret does not belong here, where it is stored; a key is given by api_key_env")
    return value


def _sendable(text: str) -> str:
    """What can stand in a request."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("expected UTF-8") from None
    return text


def _variable(name: str) -> str:
    """The name of a variable; whoever gives the key itself does not read it again."""
    if _VARIABLE.fullmatch(name) is None or holds_secret(name):
        raise ValueError("expected the name of an environment variable that holds the key, such as API_KEY")
    return name


def _pairs(value: Any) -> Any:
    """`K=V` strings to a mapping; a mapping (from a file) stays one."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        pairs = {}
        for item in value:
            key, separator, text = str(item).partition("=")
            if not separator or not key.strip():
                raise ValueError(f"expected KEY=VALUE, got {item!r}")
            pairs[key.strip()] = text.strip()
        return pairs
    return value


def _headers(value: Any) -> Any:
    """`K=V` or `K: V` strings to a mapping."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        return _pairs([_equals_first(str(item)) for item in value])
    return value


def _equals_first(item: str) -> str:
    colon, equals = item.find(":"), item.find("=")
    return item.replace(":", "=", 1) if colon >= 0 and (equals < 0 or colon < equals) else item


def _one_number(value: Any) -> Any:
    if isinstance(value, str) and "," in value:
        raise ValueError(f"expected one number, got {value!r}; `loadgen sweep` takes a ladder")
    return value


def _texts(value: Any) -> Any:
    """`a,b` to a list; what was given several times, and a list from a file, are lists already."""
    if isinstance(value, list):
        return [part for item in value for part in _texts(str(item))]
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _numbers(value: Any) -> Any:
    """`1,2,4` to a list; a list (from a file) and a single number do as well."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [value] if isinstance(value, int | float) else value


def parse_listen(text: str) -> tuple[str, int]:
    """Address and port meant by `PORT` or `ADDRESS:PORT`; without an address the loopback one.

    Raises ValueError, saying what was expected, for anything else.
    """
    host, _, port = text.strip().rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) <= _HIGHEST_PORT):
        raise ValueError(f"expected PORT or ADDRESS:PORT, with a port from 0 to {_HIGHEST_PORT}, got {text!r}")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _listen_address(value: Any) -> Any:
    if isinstance(value, str | int):
        parse_listen(str(value))
        return str(value)
    return value


def _collector_url(url: str) -> str:
    """Without a place for a secret: the URL is stored, and said when it cannot be reached."""
    expected = "expected http://HOST[:PORT][/PATH] or https://…, without user, query and fragment"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(expected)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{expected}; a key is given by OTEL_EXPORTER_OTLP_HEADERS")
    return url.rstrip("/")


DURATION = BeforeValidator(_duration)
DurationSeconds = Annotated[float, DURATION]
JsonField = Annotated[dict[str, Any], BeforeValidator(_json_object)]
PublicJson = Annotated[JsonField, AfterValidator(_public)]
StrictJson = Annotated[dict[str, Any], AfterValidator(strict_json)]
Sendable = Annotated[str, AfterValidator(_sendable)]
VariableName = Annotated[str, AfterValidator(_variable)]
Pairs = Annotated[dict[str, str], BeforeValidator(_pairs)]
Headers = Annotated[dict[str, str], BeforeValidator(_headers)]
CollectorUrl = Annotated[str, AfterValidator(_collector_url)]
ListenAddress = Annotated[str, BeforeValidator(_listen_address)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
OneInt = Annotated[int, BeforeValidator(_one_number)]
OneFloat = Annotated[float, BeforeValidator(_one_number)]
IntLadder = Annotated[list[int], BeforeValidator(_numbers)]
FloatLadder = Annotated[list[float], BeforeValidator(_numbers)]


def option(
    default: Any, help_text: str, *, panel: str, flags: tuple[str, ...] = (), metavar: str | None = None, **bounds: Any
) -> Any:
    """A field with what the command line needs: help text, help panel, further flags, placeholder."""
    extra: JsonDict = {"panel": panel, "flags": list(flags), "metavar": metavar}
    return Field(default, description=help_text, json_schema_extra=extra, **bounds)


def flag_of(name: str, field: FieldInfo) -> str:
    """The long command-line option of a field: as the field says, else its name with dashes."""
    return next((flag for flag in flags_of(field) if flag.startswith("--")), "--" + name.replace("_", "-"))


def flags_of(field: FieldInfo) -> list[str]:
    """The flags that a field names itself, beyond the one that follows from its name."""
    extra = field.json_schema_extra
    flags = extra.get("flags") if isinstance(extra, dict) else None
    return [str(flag) for flag in flags] if isinstance(flags, list) else []


def panel_of(field: FieldInfo) -> str | None:
    """The help panel of a field."""
    extra = field.json_schema_extra
    return str(extra["panel"]) if isinstance(extra, dict) and "panel" in extra else None
