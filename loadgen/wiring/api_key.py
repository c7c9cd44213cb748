"""The API key that an environment variable holds."""

import os

from loadgen.core.errors import ConfigError


def api_key_from(variable: str | None) -> str | None:
    """The key; None where no variable is named. Raises ConfigError for one that holds none."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise ConfigError(f"--api-key-env: expected a key in the environment variable {variable}, which is not set")
    return key
