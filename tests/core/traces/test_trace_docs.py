"""docs/traces.md names what the code reads."""

from pathlib import Path

import pytest

from loadgen.core.traces.detect import Format
from loadgen.core.traces.native import KNOWN_KEYS
from loadgen.core.traces.row import Reason
from loadgen.core.traces.texts import CHARACTERS_PER_TOKEN, WORDS_PER_TOKEN

TEXT = (Path(__file__).parents[3] / "docs" / "traces.md").read_text()


@pytest.mark.parametrize("name", sorted({*KNOWN_KEYS, *Reason, *Format}))
def test_every_key_reason_and_format_is_documented(name: str) -> None:
    """A name that a user meets is in the reference."""
    assert f"`{name}`" in TEXT


def test_the_estimates_are_those_of_the_code() -> None:
    """The ratios stand in the text."""
    assert f"{WORDS_PER_TOKEN:g} words a token" in TEXT
    assert CHARACTERS_PER_TOKEN == 4
    assert "four characters count as a token" in TEXT
