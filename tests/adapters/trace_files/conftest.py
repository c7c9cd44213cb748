"""Where the public data files for tests are."""

from pathlib import Path

import pytest

from tests import needs


@pytest.fixture(scope="session")
def material() -> Path:
    """Their folder in the test material."""
    return needs.material("data")
