"""Numbers and foreign text as words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.core.metrics.catalogue import CATALOGUE
from loadgen.report.words import DASH, LATENCY_LABELS, definition, milliseconds, number, percent, printable, span


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, DASH),
        (0, "0"),
        (0.0, "0"),
        (0.9, "0.900"),
        (0.0421, "0.0421"),
        (0.00002, "2.0e-05"),
        (1.0, "1.00"),
        (9.996, "10.0"),
        (99.96, "100"),
        (15559.4, "15559"),
        (15559, "15559"),
    ],
)
def test_numbers_keep_three_digits_and_have_no_separators(value: float | None, text: str) -> None:
    """0.9 never becomes 1, fifteen thousand never reads as fifteen, and what is absent is never 0."""
    assert number(value) == text


@given(st.floats(min_value=1e-4, max_value=1e9))
def test_a_number_as_text_is_within_half_a_percent(value: float) -> None:
    """What is printed is the value, to three digits."""
    assert float(number(value)) == pytest.approx(value, rel=0.0051)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, DASH), (0, "0%"), (1, "100%"), (0.0004, "< 0.1%"), (0.9997, "> 99.9%"), (0.999, "99.9%"), (0.346, "34.6%")],
)
def test_a_share_is_whole_only_when_it_is(ratio: float | None, text: str) -> None:
    """One failure in ten thousand is not 0 %, and 9,997 good of 10,000 are not 100 %."""
    assert percent(ratio) == text


def test_milliseconds_come_from_seconds() -> None:
    """80 ms of service read as 80.0, whatever the internal unit."""
    assert milliseconds(0.08) == "80.0"
    assert milliseconds(None) == DASH
    assert span(None) == DASH
    assert span(0.0) == "0 s"


@given(st.text())
def test_printable_text_has_no_control_character(text: str) -> None:
    """Nothing from a server can move the cursor, start a new line or turn the direction of the text around it."""
    shown = printable(text)
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "\u202a\u202e\u2066\u2028\ud800" for c in shown)
    if text.isprintable():
        assert shown == text


def test_printable_shows_what_was_there() -> None:
    """An escape sequence and a direction override are readable, an emoji of joined parts stays whole."""
    assert printable("a\x1b[2Jb\u202ec\n") == "a\\x1b[2Jb\\u202ec\\n"
    assert printable("👩\u200d🔬") == "👩\u200d🔬"


def test_every_latency_has_a_definition() -> None:
    """A label leads to the catalogue's words, with the case that has no value."""
    for key in LATENCY_LABELS:
        assert CATALOGUE[key].definition in definition(key)
        assert "No value" in definition(key)
