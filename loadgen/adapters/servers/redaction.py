"""Keeps a server's own secrets out of what is stored of its configuration."""

import re
from typing import Any

import msgspec

PAGE_KEPT_BYTES = 256 * 2**10
REDACTED = "[secret]"
_SECRET_NAME = re.compile(
    r"(api_?key|credential|passw(or)?d|secret(_key)?|(^|(access|admin|api|auth|bearer|hf)_)token)s?$", re.IGNORECASE
)
"""Not every token: `eos_token` and the like are words of a model."""
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def kept_page(page: dict[str, Any] | None) -> dict[str, Any] | None:
    """A configuration page as it may be stored: without texts that are named like secrets and user info in addresses.

    None for a page of more than PAGE_KEPT_BYTES as JSON.
    """
    clean = None if page is None else without_secrets(page)
    return None if clean is None or len(msgspec.json.encode(clean)) > PAGE_KEPT_BYTES else clean


def names_secret(name: str) -> bool:
    """Whether what goes by this name is taken for a secret."""
    return _SECRET_NAME.search(name) is not None


def without_secrets(value: Any, name: str = "") -> Any:
    """The value as it may be stored, down to its innermost texts; `name` is what it goes by."""
    match value:
        case str():
            return REDACTED if value and names_secret(name) else _USER_INFO.sub("", value)
        case dict():
            return {key: without_secrets(item, key) for key, item in value.items()}
        case list():
            return [without_secrets(item, name) for item in value]
        case _:
            return value
