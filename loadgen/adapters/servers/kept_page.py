"""What is stored of the page on which a server tells its configuration."""

from typing import Any

import msgspec

from loadgen.core.redaction import without_secrets

PAGE_KEPT_BYTES = 256 * 2**10


def kept_page(page: dict[str, Any] | None) -> dict[str, Any] | None:
    """A configuration page as it may be stored: without texts that are named like secrets and user info in addresses.

    None for a page of more than PAGE_KEPT_BYTES as JSON.
    """
    clean = None if page is None else without_secrets(page)
    return None if clean is None or len(msgspec.json.encode(clean)) > PAGE_KEPT_BYTES else clean
