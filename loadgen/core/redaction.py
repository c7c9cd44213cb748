"""What is taken for a secret, by its name or by how it looks, and what is stored in its place."""

import re
from collections.abc import Iterator
from typing import Any

REDACTED = "[secret]"
_SECRET_NAME = re.compile(
    r"((^|_)cookie|api_?key|credential|passw(or)?d|passphrase|secret"
    r"|(access|account|auth|client|deploy|encryption|license|private|secret|service|signing|ssh)_?key(_id)?)s?$"
    r"|(^|_)(auth|authorization|pass|token)$|_(pat|pwd)$|(^|_)(access|admin|api|auth|bearer|hf)_tokens$",
    re.IGNORECASE,
)
"""`PWD` alone is the folder of a shell."""
_MODEL_TOKEN = re.compile(
    r"(^|_)(bo[a-z]|eo[a-z]|bad|begin|call|chat|cls|decode|draft|end|fim|first|image|input|last|mask|middle|next|output"
    r"|pad|per|placeholder|prefix|prompt|reasoning|sep|special|start|stop|suffix|text|think|tool|turn|unk|video|vision"
    r"|audio)_token$",
    re.IGNORECASE,
)
"""Words of a model rather than secrets."""
_SECRET_TEXT = re.compile(
    r"(?<![A-Za-z0-9])("
    r"hf_[A-Za-z0-9]{16,}"
    r"|sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
    r"|gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
    r"|nvapi-[A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(AKIA|ASIA)[A-Z0-9]{16}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"
    r"|[Bb]earer +[A-Za-z0-9._~+/-]{8,}=*"
    r")|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""Keys and tokens that say by their first letters what they are."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]+@")
_NAMED_TEXT = re.compile(r'"([^"\\]+)"\s*:\s*"[^"]')
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def names_secret(name: str) -> bool:
    """Whether what goes by this name is taken for a secret."""
    plain = name.replace("-", "_")
    return _SECRET_NAME.search(plain) is not None and _MODEL_TOKEN.search(plain) is None


def holds_secret(text: str) -> bool:
    """Whether a secret stands in the text: a well-known key, a password in a URL, or JSON in which one is named."""
    return (
        _SECRET_TEXT.search(text) is not None
        or _PASSWORD.search(text) is not None
        or any(names_secret(match[1]) for match in _NAMED_TEXT.finditer(text))
    )


def secrets_within(value: Any, *keys: str | int) -> Iterator[tuple[str | int, ...]]:
    """The places within a value of JSON, by their keys, where a secret stands."""
    match value:
        case str():
            named = value and next((names_secret(key) for key in reversed(keys) if isinstance(key, str)), False)
            if named or holds_secret(value):
                yield keys
        case dict():
            for key, item in value.items():
                yield from secrets_within(item, *keys, str(key))
        case list():
            for place, item in enumerate(value):
                yield from secrets_within(item, *keys, place)


def without_secrets(value: Any, name: str = "") -> Any:
    """The value as it may be stored, down to its innermost texts; `name` is what it goes by."""
    match value:
        case str():
            return REDACTED if value and names_secret(name) else _SECRET_TEXT.sub(REDACTED, _USER_INFO.sub("", value))
        case dict():
            return {key: without_secrets(item, key) for key, item in value.items()}
        case list():
            return [without_secrets(item, name) for item in value]
        case _:
            return value
