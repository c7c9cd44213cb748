"""Work of others on the server under test, told from the two sides' token counts."""

import pytest

from loadgen.core.server.foreign import ForeignTraffic, foreign
from loadgen.core.server.sample import Counters


def compared(prompt: float | None, generation: float | None) -> ForeignTraffic | None:
    """A server's counts against a client's 1000 and 400."""
    counters = Counters(prompt_tokens=prompt, generation_tokens=generation)
    return foreign(counters, client_prompt_tokens=1000, client_generation_tokens=400)


def test_a_tenth_more_is_seen() -> None:
    """On either count, with its share."""
    for found in (compared(1000, 440), compared(1100, 400), compared(1100, None)):
        assert found is not None
        assert found.exceeds
        assert not found.falls_short
        assert found.reason is not None
        assert "other clients" in found.reason
    assert compared(1100, 400) == ForeignTraffic(
        prompt_excess_ratio=pytest.approx(0.1), generation_excess_ratio=pytest.approx(0)
    )


def test_half_a_percent_is_not() -> None:
    """In either direction: ends of answers and of scrapes differ by as much."""
    for found in (compared(1005, 402), compared(995, 398), compared(1000, 400)):
        assert found is not None
        assert not found.exceeds
        assert not found.falls_short
        assert found.reason is None


def test_falling_short_is_seen_too() -> None:
    """Work that is on no page that was read."""
    found = compared(1000, 200)
    assert found is not None
    assert found.falls_short
    assert found.generation_excess_ratio == -0.5
    assert found.reason is not None
    assert "another process" in found.reason


def test_without_counts_there_is_nothing_to_compare() -> None:
    """A void window, or a client that counted nothing."""
    assert compared(None, None) is None
    assert foreign(Counters(prompt_tokens=5), client_prompt_tokens=0, client_generation_tokens=None) is None
