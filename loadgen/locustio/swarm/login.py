"""The user and the password of Locust's page, from where the options say they are."""

import os
import stat
from pathlib import Path

from loadgen.adapters.store.files import reason
from loadgen.core.errors import ConfigError
from loadgen.options.locust import LocustOptions

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH


def login_of(options: LocustOptions) -> tuple[str, str] | None:
    """Both, None for a page that asks nobody. Raises ConfigError for what holds none, or may be written by others."""
    path, variable = options.web_login_file, options.web_login_env
    if path is not None:
        return _parsed(_read(path), f"--web-login-file: expected a line USER:PASSWORD in {path}")
    if variable is not None:
        said = f"--web-login-env: expected USER:PASSWORD in the environment variable {variable}"
        return _parsed(os.environ.get(variable, ""), said)
    return None


def _read(path: Path) -> str:
    """Its line. Who may read it is not asked: containers are given secrets in files that all their users may read."""
    try:
        with path.open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & _WRITABLE:
                raise ConfigError(f"--web-login-file: {path} may be written by others than its owner: chmod 600 {path}")
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as fault:
        said = reason(fault) if isinstance(fault, OSError) else "no text"
        raise ConfigError(f"--web-login-file: {path} cannot be read: {said}") from None


def _parsed(text: str, said: str) -> tuple[str, str]:
    user, colon, password = text.partition(":")
    if not (user and colon and password and text.isprintable()):
        raise ConfigError(said)
    return user, password
