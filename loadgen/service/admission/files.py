"""Files that runs may name: those in one folder, by plain relative names."""

import os
from pathlib import Path, PurePosixPath

from loadgen.core.errors import ConfigError


def file_within(folder: Path, name: str) -> Path:
    """The file of that name. Raises ConfigError for one outside the folder, also by a link, or that is not there."""
    pure = PurePosixPath(name)
    if not name or pure.is_absolute() or ".." in pure.parts or "\\" in name or not name.isprintable():
        raise ConfigError(f"expected the name of a file in the service's files folder, got {name[:200]!r}")
    root = folder.resolve()
    path = (root / pure).resolve()
    if not path.is_relative_to(root):
        raise ConfigError(f"{name}: leads out of the service's files folder")
    if not os.path.isfile(path):  # noqa: PTH113 (unlike the method it is False of a name longer than files can have)
        raise ConfigError(f"{name}: no such file in the service's files folder")
    return path
