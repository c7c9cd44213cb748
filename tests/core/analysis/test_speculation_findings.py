"""Doubts about speculation: on the run that deserves them, and not on the one that does not."""

from loadgen.core.record import RequestSpeculation
from tests.core.analysis.factory import closed_loop, findings


def test_a_verifier_that_is_not_exact() -> None:
    """Named by its setting; a server that is exact, or says nothing, gets no such finding."""
    loose = {"speculation": {"method": "EAGLE", "lossy": ["speculative_accept_threshold_single=0.9"]}}
    found = findings(closed_loop(), server=loose)["lossy_verifier"]
    assert "speculative_accept_threshold_single=0.9" in found.evidence
    for told in ({}, {"speculation": None}, {"speculation": {"lossy": []}}, {"speculation": {"lossy": None}}):
        assert "lossy_verifier" not in findings(closed_loop(), server=told)


def test_acceptance_that_is_made_up() -> None:
    """With its length where it is known."""
    told = {"speculation": {"method": "eagle3", "forced": True, "forced_acceptance_length": 2.5}}
    found = findings(closed_loop(), server=told)["forced_acceptance"]
    assert (found.severity, "2.5 tokens a step" in found.evidence) == ("info", True)
    assert "forced_acceptance" not in findings(closed_loop(), server={"speculation": {"forced": False}})


def test_acceptance_on_invented_text_says_nothing() -> None:
    """Said only where acceptance is shown."""
    drafted = closed_loop(
        speculation=RequestSpeculation(steps=4, drafted_tokens=12, accepted_tokens=6, histogram=(1, 1, 1, 1))
    )
    assert "invented_text" in findings(drafted, data={"text": "invented"})
    assert "invented_text" not in findings(drafted, data={"text": "real"})
    assert "invented_text" not in findings(closed_loop(), data={"text": "invented"})
