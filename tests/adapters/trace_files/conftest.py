"""Where the public data files for tests are."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def material() -> Path:
    """The folder of test material: LOADGEN_TEST_MATERIAL, else `shared` beside the repository."""
    root = Path(__file__).parents[3]
    folder = Path(os.environ.get("LOADGEN_TEST_MATERIAL", root.parent / "shared")) / "data"
    if not folder.is_dir():
        message = f"public traces are not at {folder}; set LOADGEN_TEST_MATERIAL to the folder that holds data/"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder
