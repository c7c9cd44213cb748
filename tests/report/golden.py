"""Texts as they were agreed on."""

import os
from pathlib import Path

import pytest


class Golden:
    """Compares text with a file under tests/golden/reports; with REGENERATE=1 writes it and fails, once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def check(self, name: str, text: str) -> None:
        """Fails when the file says something else."""
        path = self._folder / name
        if os.environ.get("REGENERATE") == "1":
            old = path.read_bytes() if path.exists() else None
            if old != text.encode():
                path.write_bytes(text.encode())
                pytest.fail(f"{path} was written anew: read the difference, then run again without REGENERATE")
        assert text == path.read_bytes().decode(), f"{path} differs; REGENERATE=1 writes it anew"
